# shellcheck shell=bash
# Report the line that fails. bash reads this file before install.sh and test.sh (BASH_ENV). The report
# goes to descriptor 9, because the script may capture stdout or stderr.
unset BASH_ENV
set -E
sifwright_failed() {
  printf 'sifwright: line %s %s %s:%s: %s\n' \
    "$1" "$SIFWRIGHT_LAYER" "${0##*/}" "$2" "${3%%$'\n'*}" >&9
}
trap 'sifwright_failed "$?" "$LINENO" "$BASH_COMMAND" 2>/dev/null || true' ERR
