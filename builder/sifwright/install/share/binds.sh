# shellcheck shell=bash
# Lists of binds, as Apptainer reads them (pkg/util/bind).
BINDS=()
declare -A BOUND=() # targets that have a bind

add_bind() { # add_bind BIND: to BINDS, if its target has none
  local target=${1//\\:/$'\n'} # a colon behind a backslash is part of a path
  target=${target#*:}
  target=${target%%:*}
  target=${target//$'\n'/:}
  [[ -z ${BOUND[":$target"]:-} ]] || return 0
  BINDS+=("$1")
  BOUND[":$target"]=yes
}

# A comma behind a backslash is part of a path. Options belong to the bind before them, if it has a target.
add_binds() { # add_binds LIST
  local rest=$1, bind='' word
  while [[ -n $rest ]]; do
    word=${rest%%,*} rest=${rest#*,}
    if [[ $bind == *\\ ]]; then
      bind+=,$word
      continue
    fi
    [[ $word =~ ^[[:blank:]]*(.*[^[:blank:]]|) ]]
    word=${BASH_REMATCH[1]}
    if [[ $bind == *[!\\]:* && $word == @(ro|rw|id=*|image-src=*) ]]; then
      bind+=,$word
    elif [[ -n $word ]]; then
      [[ -z $bind ]] || add_bind "$bind"
      bind=$word
    fi
  done
  [[ -z $bind ]] || add_bind "$bind"
}

joined_binds() {
  local IFS=,
  printf %s "${BINDS[*]-}"
}
