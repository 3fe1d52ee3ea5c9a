#!/bin/bash
# Install NVIDIA's compiler beside the CUDA libraries of torch, and make one toolkit of both.
set -euo pipefail

# Torch has installed the release that it requires; this adds the other parts. The program cuobjdump is a package
# since CUDA 13.2 only, and reads older code.
pip install "cuda-toolkit[cccl,crt,cudart,nvcc,nvml,nvvm,profiler]==$OPT_CUDA.*" "nvidia-cuda-cuobjdump==${OPT_CUDA%%.*}.*"

packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia
readonly packages toolkit=$packages/cu${OPT_CUDA%%.*} prefix=$INSTALL_PREFIX/cuda
ln -sfn "$toolkit" "$prefix"
ln -sfn lib "$toolkit/lib64" # where nvcc and torch look
for part in cudnn nccl; do
  ln -sfn "$packages/$part"/include/* "$toolkit/include/"
  ln -sf "$packages/$part"/lib/lib*.so.* "$toolkit/lib/"
done
# The linker takes names without a version.
for library in "$toolkit"/lib/lib*.so.*; do
  ln -sf "${library##*/}" "${library%%.so.*}.so"
done
# An image has it at the usual place, too, and programs find its libraries without a variable.
if [[ -z $IMAGE_ROOT ]]; then
  ln -sfn "$prefix" /usr/local/cuda
  echo "$prefix/lib64" >/etc/ld.so.conf.d/cuda.conf
  ldconfig
fi

# The driver's libraries are on nodes with GPUs only. NVIDIA's other packages bring stubs of them to link with.
make_stub() { # make_stub LIBRARY HEADER PREFIX ANSWER
  local names
  # Programs with a stream for each thread ask for other names.
  names=$(for flag in -DPLAIN -DCUDA_API_PER_THREAD_DEFAULT_STREAM; do
    echo "#include <$2>" | cpp -P "$flag" -I"$toolkit/include"
  done | grep -oP "\b$3[A-Z]\w*(?=\()" | sort -u) || true
  [[ -n $names ]] || { echo "no function of $1 is found in $2" >&2; exit 1; }
  printf '%s\n' "$names" | sed "s/.*/int &(void) { return $4; }/" |
    gcc -shared -Wl,-soname,"$1.so.1" -x c -o "$toolkit/lib/stubs/$1.so" -
}
mkdir -p "$toolkit/lib/stubs"
make_stub libcuda cuda.h cu 34        # CUDA_ERROR_STUB_LIBRARY
make_stub libnvidia-ml nvml.h nvml 12 # NVML_ERROR_LIBRARY_NOT_FOUND

# Its headers refuse a host compiler that is too new.
echo 'int main() {}' >empty.cu
"$prefix/bin/nvcc" -o empty empty.cu
