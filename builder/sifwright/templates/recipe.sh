# shellcheck shell=bash
# What the install.sh of an imported recipe is made of; 'sifwright import' puts it into its layers.

layer=$PWD
# What was put into a folder that is the building machine's own (/tmp): it goes when the step ends.
borrowed=()
# The variables that the base image's ENV sets.
of_base=()
trap '((${#borrowed[@]} == 0)) || rm -rf -- "${borrowed[@]}"' EXIT

# What a build of the recipe finds around it: the base image's environment, and root's home.
# Of the variables that are named, it begins with those of the base image.
as_recipe() { # NAME…
  local -r image=/.singularity.d/env/10-docker2singularity.sh
  export GIT_CONFIG_SYSTEM=$HOME/.gitconfig HOME=/root
  export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  unset BASH_ENV LC_ALL "$@"
  [[ ! -f $image ]] || {
    local word rest
    while read -r word rest; do
      [[ $word != export ]] || of_base+=("${rest%%=*}")
    done <"$image"
    set +u
    # shellcheck source=/dev/null
    . "$image"
    set -u
  }
}

# ARG, which gives way to what the base image's ENV says.
argument() { # NAME VALUE
  [[ " ${of_base[*]} " == *" $1 "* ]] || export "$1=$2"
}

# An ARG whose value is in this layer already: the base image must not have another one.
fixed_argument() { # NAME VALUE
  argument "$@"
  [[ ${!1} == "$2" ]] || {
    printf 'ARG %s is "%s" here, but the base image has "%s", which Docker would take: say it in ENV\n' \
      "$1" "$2" "${!1}" >&2
    exit 1
  }
}

# RUN as Docker does it: by sh, which does not stop at the first error by itself.
run() { # FOLDER FILE
  (cd "$1" && exec /bin/sh -c "$(<"$layer/$2")" </dev/null)
}

# RUN ["program", "word"]: without a shell.
run_words() { # FOLDER WORD…
  (cd "$1" && exec "${@:2}" </dev/null)
}

# %post as Apptainer 1.4 does it: with this umask, and the usual folders on PATH (tried).
post() { # FILE SHELL…
  local place
  for place in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    [[ :$PATH: == *:$place:* ]] || PATH+=:$place
  done
  (cd / && umask 002 && exec "${@:2}" "$layer/$1" </dev/null)
}

# Refuse to replace what is somebody else's.
borrow() { # PATH…
  local path
  for path; do
    if [[ -e $path || -L $path ]]; then
      printf '%s is there already: the steps see the /tmp of the building machine\n' "$path" >&2
      exit 1
    fi
    borrowed+=("$path")
  done
}

folder() { # PATH
  mkdir -p -- "$1"
}

# A folder that COPY brings takes the place of a link or a file, as in Docker 20.10 and buildah (tried),
# but not of a link of the system's, such as /lib: no program would start after that.
copied_folder() { # PATH LINE
  if [[ -L $1 && ${1%/*} == '' && -d $1 ]]; then
    printf 'line %s of the recipe: COPY brings %s as a folder, which is a link here: call it %s\n' \
      "$2" "$1" "$(cd -P -- "$1" && pwd)" >&2
    exit 1
  fi
  [[ ! -L $1 && -d $1 ]] || rm -f -- "$1"
  mkdir -p -- "$1"
}

# A folder gives way to a file or link of COPY's, but not with what is mounted there (/tmp): that is the
# building machine's.
make_way() { # PATH
  local place mounted
  if [[ ! -d $1 || -L $1 ]]; then
    rm -f -- "$1"
    return
  fi
  place=$(cd -P -- "$1" && pwd)
  while read -r _ _ _ _ mounted _; do
    printf -v mounted %b "$mounted"
    if [[ $mounted/ == "$place"/* ]]; then
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
