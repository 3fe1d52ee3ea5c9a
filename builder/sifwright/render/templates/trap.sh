# shellcheck shell=bash
# Sourced by the bash of install.sh and test.sh before the script itself (BASH_ENV): says on
# descriptor 9 which line fails. Not on stdout or stderr, which the script may be reading.
unset BASH_ENV
set -E
sifwright_failed() {
  printf 'sifwright: line %s %s %s:%s: %s\n' \
    "$1" "$SIFWRIGHT_LAYER" "${0##*/}" "$2" "${3%%$'\n'*}" >&9
}
trap 'sifwright_failed "$?" "$LINENO" "$BASH_COMMAND" 2>/dev/null || true' ERR
