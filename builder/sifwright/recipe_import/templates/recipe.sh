# shellcheck shell=bash
# Functions for the install.sh of imported recipes; 'sifwright import' puts this file into its layers.

layer=$PWD
# Files in folders that are the building machine's own (/tmp): they go when the step ends.
borrowed=()
recipe_user=
# Folders that a RUN --mount covers, and the first folder that was made for it.
hidden=()
# Files from before the step. In a container of Docker or podman, they belong to the image.
others=()
if [[ ! -e $SIFWRIGHT_BUILD/environment-so-far && ! -e $SIFWRIGHT_BUILD/base-environment ]]; then
  shopt -s nullglob dotglob
  others=(/tmp/* /var/tmp/* /dev/shm/*)
  shopt -u nullglob dotglob
fi
# The environment of RUN and %post, and what of it the base image says. It is not this script's own:
# bash keeps some names for itself (UID, GROUPS), and others are the script's.
declare -A recipe_env=() base_env=()
# The building machine's variables for RUN and %post, as Docker hands on its proxies. The rest of a step's
# environment is not the recipe's.
machine_env=()
# Set if the base image's environment has the additions of the layers before this one.
is_applied=
trap '((${#borrowed[@]} == 0)) || rm -rf -- "${borrowed[@]}"' EXIT

# Environment of a recipe's build: the base image's, and root's home.
as_recipe() {
  local word
  recipe_env=([HOME]=/root [PATH]=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  # pip may keep and purge its cache, but the image has no use for it.
  [[ -e /root/.cache/pip ]] || borrowed+=(/root/.cache/pip)
  find_machine
  find_environment
  while IFS= read -r -d '' word; do
    # A Dockerfile gives a step's options and sources as variables.
    [[ -z $is_applied || ${word%%=*} != @(OPT|SOURCE)_* ]] || continue
    case ${word%%=*} in
      PWD | OLDPWD | SHLVL | HOSTNAME | _) ;;
      # ARG does not replace these variables of the engine.
      HOME | TERM | container) recipe_env[${word%%=*}]=${word#*=} ;;
      *)
        base_env[${word%%=*}]=${word#*=}
        recipe_env[${word%%=*}]=${word#*=}
        ;;
    esac
  done <"$SIFWRIGHT_BUILD/tmp/environment"
}

# Proxies, certificates, and what the machine's own settings export: pip's indexes.
find_machine() {
  local name line
  local -r machine=$SIFWRIGHT_BUILD/machine
  local -a names=({http,https,ftp,no,all}_proxy {HTTP,HTTPS,FTP,NO,ALL}_PROXY)
  names+=(SSL_CERT_FILE REQUESTS_CA_BUNDLE PIP_CERT CURL_CA_BUNDLE GIT_SSL_CAINFO)
  while IFS= read -r line; do
    [[ ! $line =~ ^export\ ([A-Za-z_][A-Za-z0-9_]*)= ]] || names+=("${BASH_REMATCH[1]}")
  done < <(cat "$machine/environment" 2>/dev/null)
  for name in "${names[@]}"; do
    [[ -z ${!name-} ]] || machine_env+=("$name=${!name}")
  done
  # apt's proxies; and git's mirrors, by variables, as a file would take the place of the system's own.
  if [[ -s $machine/apt.conf || -s $machine/ca.crt || -s $SIFWRIGHT_BUILD/kept/apt.conf ]]; then
    machine_env+=("APT_CONFIG=$APT_CONFIG")
  fi
  # The logins of pip's indexes, which are in no address (step.sh).
  if [[ -s $machine/netrc ]]; then
    machine_env+=("NETRC=$machine/netrc")
  fi
  if [[ -s $machine/gitconfig ]]; then
    machine_env+=(GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=include.path "GIT_CONFIG_VALUE_0=$machine/gitconfig")
    machine_env+=(GIT_CONFIG_KEY_1=protocol.file.allow GIT_CONFIG_VALUE_1=always)
    machine_env+=(GIT_CONFIG_KEY_2=safe.directory "GIT_CONFIG_VALUE_2=*")
  fi
}

# From what starts steps in an OCI image (oci/run, enter.sh), or as Apptainer keeps it in a SIF.
find_environment() {
  local -r kept=/.singularity.d/env/10-docker2singularity.sh
  if [[ -f $SIFWRIGHT_BUILD/environment-so-far ]]; then
    is_applied=yes
    cat "$SIFWRIGHT_BUILD/environment-so-far"
  elif [[ -f $SIFWRIGHT_BUILD/base-environment ]]; then
    cat "$SIFWRIGHT_BUILD/base-environment"
  elif [[ -f $kept ]]; then
    # shellcheck disable=SC2016  # the other shell's own
    env -i /bin/sh -c '. "$1" && exec /usr/bin/env -0' sh "$kept"
  fi >"$SIFWRIGHT_BUILD/tmp/environment"
}

# ENV, by the actions of a layer's header.
variable() { # NAME ACTION VALUE
  local old=${recipe_env[$1]-}
  case $2 in
    set) recipe_env[$1]=$3 ;;
    prepend) recipe_env[$1]=$3${old:+:$old} ;;
    append) recipe_env[$1]=${old:+$old:}$3 ;;
  esac
}

# ENV of a layer before this one.
earlier() { # NAME ACTION VALUE
  [[ -n $is_applied && $2 != set ]] || variable "$@"
}

# The same, of what no header before this layer's has: an image knows it from there on.
waiting() { # NAME ACTION VALUE
  [[ -z $is_applied ]] || variable "$@"
}

# ARG, which gives way to what the base image's ENV says.
argument() { # NAME VALUE
  [[ -n ${base_env[$1]+set} ]] || recipe_env[$1]=$2
}

# An ARG with its value in this layer already: the base image must not have another one.
fixed_argument() { # NAME VALUE
  argument "$@"
  [[ ${recipe_env[$1]} == "$2" ]] || {
    printf 'ARG %s is "%s" here, but the base image has "%s", which Docker would take: say it in ENV\n' \
      "$1" "$2" "${recipe_env[$1]}" >&2
    exit 1
  }
}

# A value that COPY, ENV or WORKDIR has of the base image's ENV since the import.
base_variable() { # NAME VALUE
  [[ ${base_env[$1]-} == "$2" ]] || {
    printf 'the base image has %s="%s", and had "%s" when the recipe was imported: import it again\n' \
      "$1" "${base_env[$1]-}" "$2" >&2
    exit 1
  }
}

# USER: its name or number, and that of its group, which the RUNs after it run as.
user() { # USER[:GROUP]
  recipe_user=$1
}

# Have the words that become the user, and its home, from the two files that Docker reads.
find_user() {
  local user=${recipe_user%%:*} name id first members path groups=
  local uid=$user gid=0 group=
  [[ $recipe_user != *:* ]] || group=${recipe_user#*:} gid=${recipe_user#*:}
  home=/
  while IFS=: read -r name _ id first _ path _ || [[ -n $name ]]; do
    [[ $user == "$name" || $user == "$id" ]] || continue
    user=$name uid=$id gid=${group:-$first} home=$path
    break
  done < <(cat /etc/passwd 2>/dev/null)
  while IFS=: read -r name _ id members || [[ -n $name ]]; do
    # A group that is named is the only one.
    if [[ -n $group ]]; then
      [[ $group != "$name" ]] || gid=$id
    elif [[ ,$members, == *,"$user",* ]]; then
      groups+=,$id
    fi
  done < <(cat /etc/group 2>/dev/null)
  as_user=(/usr/sbin/chroot --skip-chdir "--userspec=$uid:$gid" "--groups=${groups#,}" /)
}

# Become a program of the recipe's.
in_recipe() { # WORD…
  local name home=/root
  local -a given=() as_user=()
  [[ -z $recipe_user ]] || find_user
  [[ ${recipe_env[HOME]} != /root ]] || recipe_env[HOME]=${home:-/}
  for name in "${!recipe_env[@]}"; do
    given+=("$name=${recipe_env[$name]}")
  done
  exec /usr/bin/env -i ${machine_env[@]+"${machine_env[@]}"} "${given[@]}" ${as_user[@]+"${as_user[@]}"} "$@" </dev/null
}

# Do RUN as Docker does: by the words of SHELL. /bin/sh -c does not stop at the first error.
run() { # FOLDER FILE SHELL…
  (cd "$1" && in_recipe "${@:3}" "$(<"$layer/$2")")
}

# RUN of a here-document that names its own interpreter.
run_file() { # FOLDER FILE SHELL…
  (cd "$1" && in_recipe "${@:3}" "$layer/$2")
}

# RUN ["program", "word"]: without a shell.
run_words() { # FOLDER WORD…
  (cd "$1" && in_recipe "${@:2}")
}

# %post as Apptainer 1.4 does it: with this umask, this language, and the usual folders on PATH (tried).
post() { # FILE SHELL…
  local folder
  recipe_env[LANG]=${recipe_env[LANG]:-C}
  for folder in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    [[ :${recipe_env[PATH]}: == *:$folder:* ]] || recipe_env[PATH]+=:$folder
  done
  (cd / && umask 002 && in_recipe "${@:2}" "$layer/$1")
}

# Note the paths that the step makes there; refuse those below a path from before the step.
borrow() { # PATH…
  local path other
  for path; do
    # Bash before 4.4 has no empty lists.
    for other in ${others[@]+"${others[@]}"}; do
      [[ $path/ != "$other"/* ]] || {
        printf '%s was there before the step began: it is not of the recipe\n' "$other" >&2
        exit 1
      }
    done
    # Borrowed paths are removed, so refuse these folders themselves.
    [[ $path != /tmp && $path != /var/tmp && $path != /dev/shm ]] || exit 1
    borrowed+=("$path")
  done
}

# RUN --mount: put aside what the image has there, until the RUN is over.
hide() { # PATH
  hidden=("$1" "$(first_missing "$1")" ${hidden[@]+"${hidden[@]}"})
  [[ ! -e $1 && ! -L $1 ]] || mv -- "$1" "$1.hidden"
  mkdir -p -- "${1%/*}/"
}

# The folder to begin with in order to have a path.
first_missing() { # PATH
  local path=$1
  while [[ ! -e ${path%/*}/ ]]; do path=${path%/*}; done
  printf '%s' "$path"
}

# WORKDIR behind USER: what is made for it is the user's.
workdir() { # PATH
  local first
  [[ ! -d $1 ]] || return 0
  first=$(first_missing "$1")
  mkdir -p -- "$1"
  chown -R -- "$(in_recipe id -u):$(in_recipe id -g)" "$first"
}

# The last that was hidden comes back first; folders that were made for it go if they are empty.
show() {
  local path
  while ((${#hidden[@]} > 0)); do
    path=${hidden[0]}
    rm -rf -- "$path"
    [[ ! -e $path.hidden && ! -L $path.hidden ]] || mv -- "$path.hidden" "$path"
    while [[ $path != "${hidden[1]}" ]]; do
      path=${path%/*}
      rmdir -- "$path" 2>/dev/null || break
    done
    hidden=(${hidden[@]+"${hidden[@]:2}"})
  done
}

folder() { # PATH
  mkdir -p -- "$1"
}

# A folder of COPY replaces a link or a file, as in Docker 20.10 and buildah (tried). It does not replace
# a link of the system, such as /lib, because no program would start without it.
copied_folder() { # PATH LINE
  if [[ -L $1 && ${1%/*} == '' && -d $1 ]]; then
    printf 'line %s of the recipe: COPY brings %s as a folder, which is a link here: call it %s\n' \
      "$2" "$1" "$(cd -P -- "$1" && pwd)" >&2
    exit 1
  fi
  [[ ! -L $1 && -d $1 ]] || rm -f -- "$1"
  mkdir -p -- "$1"
}

# A folder gives way to a file or link of COPY. Mounted files below it (/tmp) stay, because they are the
# building machine's.
make_way() { # PATH
  local folder mounted
  if [[ ! -d $1 || -L $1 ]]; then
    rm -f -- "$1"
    return
  fi
  folder=$(cd -P -- "$1" && pwd)
  while read -r _ _ _ _ mounted _; do
    printf -v mounted %b "$mounted"
    if [[ $mounted/ == "$folder"/* ]]; then
      printf 'COPY would replace %s, where the build has %s of the machine: copy to another name\n' \
        "$1" "$mounted" >&2
      exit 1
    fi
  done </proc/self/mountinfo
  rm -rf -- "$1"
}

# COPY to a folder: what lies in a folder of this one.
copy_into() { # FOLDER TARGET
  local path
  mkdir -p -- "$2"
  while IFS= read -r -d '' path; do
    make_way "${2%/}/$path"
  done < <(cd "$layer/$1" && find . -type f -print0)
  cp -R --remove-destination -- "$layer/$1/." "$2"
}

# COPY of a file to another name, or into the folder of that name; 'copied' is where it is.
copy_file() { # FILE TARGET
  copied=$2
  [[ ! -d $copied ]] || copied=${copied%/}/${1##*/}
  mkdir -p -- "${copied%/*}/"
  make_way "$copied"
  cp --remove-destination -- "$layer/$1" "$copied"
}

# %files: by cp, into a folder if the target is one.
copy_files() { # FOLDER TARGET
  case $2 in
    */) mkdir -p -- "$2" ;;
    */*) mkdir -p -- "${2%/*}/" ;;
  esac
  (umask 002 && shopt -s dotglob && cp -R -- "$layer/$1/"* "$2")
}

link() { # TARGET PATH
  make_way "$2"
  ln -s -- "$1" "$2"
}

# ADD of a local archive.
unpack() { # FILE TARGET
  mkdir -p -- "$2"
  tar -x --numeric-owner -p -f "$layer/$1" -C "$2"
}

# ADD of an address; its pin is in pins.yaml.
download() { # SOURCE NAME TARGET
  "$SIFWRIGHT_BUILD/bin/fetch-source" "$1" "$layer/downloads/$1"
  copied=$3
  [[ $copied != */ && ! -d $copied ]] || copied=${copied%/}/$2
  mkdir -p -- "${copied%/*}/"
  mv -- "$layer/downloads/$1"/* "$copied"
  chmod 600 -- "$copied"
}
