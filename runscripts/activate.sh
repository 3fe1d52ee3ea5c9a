# The functions of the run scripts: activate() the Python environment of the image, become() a
# program of it. Sourced by the run scripts, and by pytorch-pip of the module in the container.
# shellcheck shell=bash

# shellcheck source=environment.sh source-path=SCRIPTDIR disable=SC1091
source "${BASH_SOURCE[0]%/*}/environment.sh"

readonly EX_CONFIG=78     # sysexits.h: something is unconfigured or misconfigured
readonly EX_NOT_FOUND=127 # what a shell returns for a command that does not exist
readonly USER_VENV=/user-software/venv/pytorch # bound by the module: the packages of pytorch-pip

fail() { # fail CODE MESSAGE...
  local -r code=$1
  shift
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit "$code"
}

activation_failed() {
  fail "$EX_CONFIG" "WITH_CONDA='${WITH_CONDA}' failed${1:+ with exit code $1}: it must be the" \
    "command that activates the Python environment of the image; run it by hand to see why it fails"
}

# Call without arguments, because a sourced file sees the positional parameters of its caller.
# The `activate` of conda would take the name of the training script as that of an environment.
activate() {
  [[ -n ${WITH_CONDA:-} ]] || fail "$EX_CONFIG" "WITH_CONDA='' is unset or empty: the image sets" \
    "it to the command that activates its Python environment, for example" \
    "WITH_CONDA='source /opt/venv/bin/activate'; was it lost to --cleanenv or overridden?"
  before_activation
  trap activation_failed EXIT # an activation file that calls `exit` would end us without a word
  # Activation files read unset variables and rely on failing commands.
  set +eu
  # shellcheck disable=SC2086 # a command with arguments, to be split
  $WITH_CONDA
  local -r status=$?
  set -eu
  trap - EXIT
  ((status == 0)) || activation_failed "$status"
  require_python
  after_activation "${BASH_CMDS[python]}"
  activate_user_software
  choose_compile_caches
}

# Put the code that Triton, Inductor and torch's load() compile at run time on the node's own disk.
# On a network file system, nodes remove each other's files (pytorch#173679, triton#11512).
# Each user and image has its own folder, because an older system cannot load what a newer one
# linked.
choose_compile_caches() {
  local -A unset=([TORCHINDUCTOR_CACHE_DIR]=inductor [TRITON_CACHE_DIR]=triton
    [TORCH_EXTENSIONS_DIR]=extensions)
  local folder=${TMPDIR:-/tmp} image='' name lock
  for name in "${!unset[@]}"; do [[ -z ${!name+set} ]] || unset "unset[$name]"; done
  ((${#unset[@]} > 0)) || return 0
  image_name
  folder=${folder%/}/sifwright-compiled-$UID-$image
  make_own_folder "$folder" ||
    # Another user has the folder, and could change what we load. Without one, nothing can be
    # compiled.
    folder=$(mktemp -d "$folder-XXXXXX" 2>/dev/null) || return 0
  for name in "${!unset[@]}"; do export "$name=$folder/${unset[$name]}"; done
  for lock in "$TORCH_EXTENSIONS_DIR"/*/lock; do
    [[ ! -e $lock ]] || note "$lock is there: torch waits until its extension is compiled." \
      "Remove it if nobody compiles"
  done
}

# Sets `image` to what tells this image from others: the id of its plan; without one, where it lies.
image_name() {
  local line
  if [[ -r /opt/sifwright/plan.json ]]; then
    while read -r line; do
      if [[ $line =~ ^'"id": "'([0-9a-f]{12}) ]]; then
        image=${BASH_REMATCH[1]}
        return
      fi
    done </opt/sifwright/plan.json
  fi
  image=${APPTAINER_CONTAINER:-${SINGULARITY_CONTAINER:-}}-${VIRTUAL_ENV:-${CONDA_PREFIX:-}}
  image=${image//[^A-Za-z0-9.]/-}
  ((${#image} <= 150)) || image=${image: -150} # a name has at most 255 letters
}

# Puts the user's packages on top of the image's, unless SIFWRIGHT_USER_SOFTWARE is 'none'. Their
# Python is a link to the image's, with the version in its name. Another image's Python would not
# see the packages.
activate_user_software() {
  PATH=${PATH//$USER_VENV\/bin:/} # the module puts it before the image's
  [[ ${SIFWRIGHT_USER_SOFTWARE:-} != none && -d $USER_VENV ]] || return 0
  hash python
  [[ $USER_VENV/bin/python -ef ${BASH_CMDS[python]} ]] || fail "$EX_CONFIG" \
    "the packages in $USER_VENV were not made for this image's Python, ${BASH_CMDS[python]}: see" \
    "'list-packages', remove the folder user-software/venv (after unmake-squashfs) and install" \
    "them again; SIFWRIGHT_USER_SOFTWARE=none goes without them"
  export VIRTUAL_ENV=$USER_VENV PATH=$USER_VENV/bin:$PATH
  name_other_torch
}

# pip and uv refuse another torch, but may be told to install it.
name_other_torch() {
  local held='' version
  read -r held 2>/dev/null <"$USER_VENV/constraints.txt" || true
  for version in "$USER_VENV"/lib/python*/site-packages/torch-*.dist-info; do
    version=${version##*/torch-} version=${version%.dist-info}
    [[ $version == '*' || torch==$version == "$held" ]] ||
      note "your packages in $USER_VENV have torch $version instead of the image's $held:" \
        "remove it (pytorch-pip uninstall torch)"
  done
}

# A half-removed environment must not fall through to another Python that happens to be on PATH.
# Where the activation names no environment (WITH_CONDA=true: the image is one), PATH is the choice.
require_python() {
  local python=
  # The path that `type -P` prints, without a process.
  if hash python 2>/dev/null; then python=${BASH_CMDS[python]-}; fi
  [[ -n $python ]] || fail "$EX_NOT_FOUND" "no python on PATH='$PATH' after" \
    "WITH_CONDA='$WITH_CONDA': name an environment that has one"
  [[ -n ${VIRTUAL_ENV:-}${CONDA_PREFIX:-} ]] || return 0
  local prefix
  for prefix in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
    [[ -n $prefix && ${python%/*} -ef $prefix/bin ]] && return 0
  done
  fail "$EX_NOT_FOUND" \
    "no python in VIRTUAL_ENV='${VIRTUAL_ENV:-}' or CONDA_PREFIX='${CONDA_PREFIX:-}'" \
    "after WITH_CONDA='$WITH_CONDA', and $python is another one: repair the environment, or unset" \
    "these two variables if they come from outside the image"
}

# Becomes a program of the activated environment: the run scripts of that name lie before it on
# PATH.
become() { # become PROGRAM ARGUMENT...
  local -r name=$1
  shift
  activate
  local program
  while read -r program; do
    [[ ${program%/*} -ef ${BASH_SOURCE[0]%/*} ]] || exec_python_script "$program" "$@"
  done < <(type -aP "$name")
  fail "$EX_NOT_FOUND" "there is no $name in the environment of WITH_CONDA='$WITH_CONDA': the" \
    "image needs a layer that brings it"
}

# A script of the image names the image's Python in its first line. That one does not see the user's
# packages.
exec_python_script() { # exec_python_script PROGRAM ARGUMENT...
  local first=
  [[ ${VIRTUAL_ENV:-} == "$USER_VENV" ]] && read -r first <"$1"
  [[ $first != '#!'*/python* ]] || exec python "$@"
  exec "$@"
}
