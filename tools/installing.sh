#!/bin/bash
# What the installers of the tests' programs share; they source it: tools/install-cluster,
# tools/install-modules, tools/install-containers. Each sets NAME, TESTS (what is skipped without) and
# PROGRAMS (command or file that must exist -> Debian package that brings it) before.
#
# Nothing is started: the tests start daemons of their own, with settings of their own.

readonly POLICY=/usr/sbin/policy-rc.d

# Administrators' programs live in /usr/sbin, which an ordinary user's PATH often lacks.
PATH=$PATH:/usr/sbin:/sbin
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
umask 022 # what root installs is for everybody, whatever root's own umask

work=""         # scratch directory, made by start_work
wrote_policy="" # set once $POLICY is ours to remove

say() { printf 'install-%s: %s\n' "$NAME" "$*"; }

missing_packages() {
  local program
  for program in "${!PROGRAMS[@]}"; do
    command -v "$program" >/dev/null || [[ $program == /* && -e $program ]] || printf '%s\n' "${PROGRAMS[$program]}"
  done | sort -u
}

has_apt() { command -v apt-get >/dev/null; }

# Two at once: the second one waits, then finds less to do.
start_work() {
  [[ -z $work ]] || return 0
  work=$(mktemp -d)
  trap clean_up EXIT
  exec {lock}</run
  flock "$lock"
}

clean_up() {
  [[ -z $wrote_policy ]] || rm -f "$POLICY"
  rm -rf "$work"
}

# A package manager's hundred lines matter only when it failed.
quietly() {
  "$@" >"$work/log" 2>&1 && return
  cat "$work/log" >&2
  return 1
}

apt() { quietly apt-get -qq -o DPkg::Lock::Timeout=300 "$@"; }

# Debian's packages start their daemons, unless this file says no (invoke-rc.d(8)).
forbid_daemons() {
  [[ ! -e $POLICY ]] || return 0
  wrote_policy=yes
  printf '#!/bin/sh\nexit 101\n' >"$POLICY"
  chmod 755 "$POLICY"
}

install_packages() {
  forbid_daemons
  # A package manager killed half-way refuses all work until this was run.
  dpkg --configure -a >/dev/null 2>&1 || true
  apt update || say "apt-get update failed; going on with the lists that are there" >&2
  apt install -y --no-install-recommends "$@"
}

# With --check, say what is missing and fail; else install it, as far as that can be done here.
install_missing() {
  local -a missing
  mapfile -t missing < <(missing_packages)
  (( ${#missing[@]} > 0 )) || return 0
  if [[ ${1:-} == --check ]]; then
    say "missing: ${missing[*]}"
    return 1
  fi
  if (( EUID != 0 )) || ! has_apt; then
    say "not installed: ${missing[*]} (as root, with Debian's apt: tools/install-$NAME); $TESTS is skipped"
    return 0
  fi
  start_work
  mapfile -t missing < <(missing_packages)
  (( ${#missing[@]} > 0 )) || return 0
  say "installing ${missing[*]}"
  install_packages "${missing[@]}" || say "could not install ${missing[*]}; $TESTS is skipped"
}
