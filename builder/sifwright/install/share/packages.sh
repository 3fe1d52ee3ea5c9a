# Shared code of the commands in bin/: paths, and a container that sees the user's packages.
# Sourced; the caller has set ROOT, the folder of the installation.
# shellcheck shell=bash disable=SC2034 # used by those who source it

readonly NAME=${0##*/}
readonly VENV=/user-software/venv/pytorch # in the container, packed or not
readonly UNPACKED=share/sifwright/directory.squashfs

# shellcheck source=binds.sh source-path=SCRIPTDIR
source "$ROOT/share/sifwright/binds.sh"

say() { printf '%s: %s\n' "$NAME" "$*" >&2; }

fail() { # fail MESSAGE...: what, where, what to do
  say "$@"
  exit 1
}

# Prints the comment at the head of the command: every line from the second to the first without a #.
usage() {
  sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[-1]}"
  exit 0
}

# --- where things are ---------------------------------------------------------------------------

find_program() {
  local name
  if [[ -n ${SIFWRIGHT_PROGRAM:-} ]]; then
    PROGRAM=$(type -P "$SIFWRIGHT_PROGRAM") ||
      fail "SIFWRIGHT_PROGRAM='$SIFWRIGHT_PROGRAM' is no program: name apptainer or singularity"
    return 0
  fi
  for name in apptainer singularity; do
    if PROGRAM=$(type -P "$name"); then return 0; fi
  done
  fail "neither apptainer nor singularity is on PATH: load the module that brings one"
}

# Take the module's image, which may be the central one. Without a module, or with that of another
# installation, take the image in this folder.
find_image() {
  if [[ -n ${SIF:-} ]] && { [[ -z ${CONTAINERROOT:-} ]] || [[ $CONTAINERROOT -ef $ROOT ]]; }; then
    IMAGE=$SIF
    [[ -e $IMAGE ]] || fail "there is no SIF='$SIF': unload the module and load it again"
    return 0
  fi
  local -a images
  shopt -s nullglob
  images=("$ROOT"/*.sif)
  shopt -u nullglob
  ((${#images[@]} == 1)) || fail "${#images[@]} images in $ROOT: load the module, which names one"
  IMAGE=${images[0]}
}

# HOME_OF is the folder that holds user-software and what belongs to it.
use_folder() { # use_folder FOLDER
  [[ $1 != *[:,]* ]] || fail "'$1' has a ':' or ',', which no bind can name: use another folder"
  HOME_OF=$1
  FOLDER=$1/user-software
  CURRENT=$FOLDER.current
}

find_software() {
  use_folder "$ROOT"
  case ${SIFWRIGHT_USER_SOFTWARE:-} in
    '' | none) ;;
    /*) use_folder "${SIFWRIGHT_USER_SOFTWARE%/}" ;;
    *) fail "SIFWRIGHT_USER_SOFTWARE='$SIFWRIGHT_USER_SOFTWARE' does not begin with '/': name a" \
      "folder by its full path, or none" ;;
  esac
}

# Who only reads takes the installation's own packages as long as there are none of the user's.
find_readable_software() {
  find_software
  [[ -e $CURRENT ]] || use_folder "$ROOT"
}

# --- the container ------------------------------------------------------------------------------

# Both names get the same value: Apptainer and SingularityCE are then silent, and see it.
set_both() { # set_both SUFFIX VALUE, as in _BINDPATH or ENV_PREPEND_PATH
  export "APPTAINER$1=$2" "SINGULARITY$1=$2"
}

# The caller's binds and OWN; of those to one place of ours, ours.
merged_binds() {
  local target
  for target in /user-software /.user-software /runscripts /.sifwright /.temporary; do BOUND[":$target"]=yes; done
  add_binds "${APPTAINER_BINDPATH:-}"
  add_binds "${SINGULARITY_BINDPATH:-}"
  BINDS+=("${OWN[@]}")
  joined_binds
}

own_binds() {
  OWN=("$ROOT/runscripts:/runscripts" "$ROOT/share/sifwright:/.sifwright:ro")
  if [[ -n ${TEMPORARY:-} ]]; then OWN+=("$TEMPORARY:/.temporary"); fi
  if [[ -n ${PIP_CONF:-} ]]; then OWN+=("$PIP_CONF:/etc/pip.conf:ro"); fi
  [[ ${SIFWRIGHT_USER_SOFTWARE:-} != none ]] || return 0
  if [[ -d $FOLDER ]]; then OWN+=("$FOLDER:/.user-software"); fi
  if [[ -e $CURRENT ]]; then OWN+=("$CURRENT:/user-software:image-src=/,ro"); fi
}

prepend_path() {
  local list=$VENV/bin:/runscripts part
  local -a parts
  IFS=: read -ra parts <<<"${APPTAINERENV_PREPEND_PATH:-}:${SINGULARITYENV_PREPEND_PATH:-}"
  for part in ${parts[@]+"${parts[@]}"}; do
    [[ -z $part || :$list: == *":$part:"* ]] || list+=:$part
  done
  set_both ENV_PREPEND_PATH "$list"
}

# Settings of the module, so that the commands do without it.
enter() {
  find_program
  find_image
  own_binds
  set_both _BINDPATH "$(merged_binds)"
  prepend_path
  set_both ENV_PIP_USER 0 # else pip lands in the home directory where it can write nowhere else
  bring_gpus
}

# The site's GPUs; without the flag, torch would silently run on the CPUs.
bring_gpus() {
  local suffix=
  { read -r suffix <"$ROOT/share/sifwright/gpu"; } 2>/dev/null || true
  [[ -n $suffix ]] || return 0
  local -r own=APPTAINER_$suffix other=SINGULARITY_$suffix
  set_both "_$suffix" "${!own:-${!other:-1}}"
}

# Script of the bash that activates, and then becomes the command.
# shellcheck disable=SC2016 # not for this shell
readonly ACTIVATED='source /runscripts/activate.sh; activate; exec "$@"'

become() { # become COMMAND ARGUMENT...: signals and exit status are then the container's
  CONTAINERROOT=$ROOT SIFPYTORCH=$IMAGE \
    exec "$ROOT/runscripts/check-image" "$IMAGE" '' "$PROGRAM" exec "$IMAGE" "$@"
}

become_activated() { become bash -p -c "$ACTIVATED" "$NAME" "$@"; }

# For callers that have to tidy up afterwards. A command in the background would ignore Ctrl-C. A command
# in the foreground would keep other signals from this bash until it ends. Bash would also say "Killed".
run() { # run COMMAND ARGUMENT...: one that becomes a program
  local status=0 child
  INTERRUPTED=
  (trap - INT QUIT TERM HUP EXIT && "$@") <&0 &
  child=$!
  # shellcheck disable=SC2064 # this child
  trap "INTERRUPTED=yes; kill -TERM $child 2>/dev/null || true" TERM HUP
  trap 'INTERRUPTED=yes' INT QUIT # the terminal tells the child as well
  { wait "$child" || status=$?; } 2>/dev/null
  while [[ -n $INTERRUPTED ]]; do
    INTERRUPTED='' status=0
    { wait "$child" || status=$?; } 2>/dev/null
  done
  trap - INT QUIT TERM HUP
  return "$status"
}

parse_force() { # parse_force ARGUMENT...
  FORCE=
  case $#:${1:-} in
    0:) ;;
    1:--force) FORCE=yes ;;
    1:-h | 1:--help) usage ;;
    *) fail "there is no argument '$*': see $NAME --help" ;;
  esac
}
