# Variables of the caller that reach Python: docs/reference/run-scripts.md has the table.
# Sourced by activate.sh.
# shellcheck shell=bash

# The environment is the same on all ranks, so the first one speaks for all.
note() { # note MESSAGE...
  local name
  for name in RANK PMI_RANK OMPI_COMM_WORLD_RANK SLURM_PROCID PALS_RANKID FLUX_TASK_RANK \
    JSM_NAMESPACE_RANK; do
    [[ ${!name:-0} == 0 ]] || return 0
  done
  printf '%s: %s\n' "${0##*/}" "$*" >&2
}

before_activation() {
  export PYTHONNOUSERSITE=1 # packages of ~/.local are another Python's
  drop_missing_paths
  shorten_temporary
  ACTIVE=${VIRTUAL_ENV:-${CONDA_PREFIX:-}} ACTIVE_PYTHON=
  if hash python 2>/dev/null; then ACTIVE_PYTHON=${BASH_CMDS[python]-}; fi
}

after_activation() { # after_activation PYTHON
  # The image's own may be left on purpose, by another WITH_CONDA: it is read-only.
  if [[ -w $ACTIVE && ${ACTIVE_PYTHON%/*} -ef $ACTIVE/bin && ! ${1%/*} -ef $ACTIVE/bin ]]; then
    note "the active environment '$ACTIVE' is not used: WITH_CONDA='$WITH_CONDA' activates the" \
      "image's. WITH_CONDA='source $ACTIVE/bin/activate' keeps yours"
  fi
  drop_foreign_packages
}

# Paths of the host: without the file, OpenSSL knows no certificate, and some programs make no
# temporary file.
drop_missing_paths() {
  local name path missing=
  for name in TMPDIR SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PIP_CERT \
    GIT_SSL_CAINFO; do
    path=${!name:-}
    [[ $name != SSL_CERT_DIR ]] || path=${path%%:*} # a list
    [[ -n $path && ! -e $path ]] || continue
    missing+=", $name='${!name}'"
    unset "$name"
  done
  [[ -z $missing ]] || note "dropped, as the container has no such path: ${missing#, }." \
    "Bind the path, or unset the variable"
}

# A socket's path has at most 107 letters (unix(7)). Sockets of DataLoader's workers have
# 34 letters more than TMPDIR. The workers wait for ever if a socket cannot be made. So a longer
# TMPDIR gets a short name.
shorten_temporary() {
  local LC_ALL=C long=${TMPDIR:-} link folder=/tmp/sifwright-short-$UID # bytes are counted
  ((${#long} > 73)) || return 0
  link=$(cksum <<<"$long")
  link=$folder/${link%% *}
  make_own_folder "$folder" && { [[ -L $link ]] || ln -sn "$long" "$link" || true; } 2>/dev/null
  if [[ $link -ef $long ]]; then
    export TMPDIR=$link
  else
    note "TMPDIR='$long' is too long for sockets, for which DataLoader's workers may wait for" \
      "ever: set a shorter one"
  fi
}

make_own_folder() { # make_own_folder PATH: others can write into neither it nor what is in it
  # At the end again: another rank may have been first.
  is_own_folder "$1" || mkdir -m 700 "$1" 2>/dev/null || is_own_folder "$1"
}

is_own_folder() { # is_own_folder PATH
  [[ -d $1 && -O $1 && ! -L $1 ]]
}

# Modules of the host put packages of their Python there, which would come before the image's. A
# sitecustomize of EasyBuild adds the packages in EBPYTHONPREFIXES.
drop_foreign_packages() {
  [[ ${PYTHONPATH:-} == *python* || -n ${EBPYTHONPREFIXES:-} ]] || return 0
  [[ -z ${SIFWRIGHT_KEEP_PYTHONPATH:-} ]] || return 0
  local entry kept='' dropped=''
  local -a entries own
  mapfile -t own < <(python -I -c 'import sys
print(sys.prefix, sys.base_prefix, sys.executable, "python%d.%d" % sys.version_info[:2], sep="\n")')
  IFS=: read -ra entries <<<"${PYTHONPATH:-}"
  for entry in ${entries[@]+"${entries[@]}"}; do
    if is_foreign "$entry"; then dropped+=:$entry; else kept+=:$entry; fi
  done
  if [[ -z $kept ]]; then unset PYTHONPATH; else export PYTHONPATH=${kept#:}; fi
  EBPYTHONPREFIXES=${EBPYTHONPREFIXES:-}
  [[ ! -d ${EBPYTHONPREFIXES%%:*} ]] || dropped+=:$EBPYTHONPREFIXES
  unset EBPYTHONPREFIXES
  [[ -z $dropped ]] || note "PYTHONPATH or EBPYTHONPREFIXES names packages of another Python," \
    "which are dropped: '${dropped#:}'. Install them for the image's (pytorch-pip), or set" \
    "SIFWRIGHT_KEEP_PYTHONPATH=1"
}

is_foreign() { # is_foreign FOLDER
  [[ $1 == */python*/*-packages* && -d $1 ]] || return 1
  [[ $1 != "${own[0]}"/* && $1 != "${own[1]}"/* ]] || return 1
  [[ $1 != */"${own[3]}"/* || ! ${1%/lib*/python*/*-packages*}/bin/python -ef ${own[2]} ]]
}
