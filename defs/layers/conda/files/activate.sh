# Activate the environment 'pytorch' as `conda activate` does: source this file. Written by sifwright.
unset VIRTUAL_ENV PYTHONHOME
export CONDA_PREFIX=@ENVIRONMENT@ CONDA_DEFAULT_ENV=pytorch CONDA_SHLVL=1
export PATH=$CONDA_PREFIX/bin:$PATH
for sifwright_file in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do
  # shellcheck source=/dev/null
  [ ! -r "$sifwright_file" ] || . "$sifwright_file"
done
unset sifwright_file
