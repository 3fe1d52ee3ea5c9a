#!/bin/bash
# Run the test.sh of every layer with the options of plan.json; SIFWRIGHT_TESTS may name the layers to test.
folder=${BASH_SOURCE[0]%/*}

run_test() { # of $layer with $options
  local status=0 test=$folder/tests/$layer/test.sh
  [[ -f $test && " ${SIFWRIGHT_TESTS-$layer} " == *" $layer "* ]] || return 0
  echo "sifwright: test $layer"
  env "${options[@]}" SIFWRIGHT_LAYER="$layer" BASH_ENV="$folder/trap" bash "$test" 9>&1 || status=$?
  ((status != 0)) || return 0
  echo "sifwright: failed $layer $status"
  exit "$status"
}

set_text() { # set_text JSON: $text is the value of a word or a string
  text=${1%,}
  [[ $text == \"* ]] || return 0
  text=${text#\"} text=${text%\"}
  printf -v text %b "${text//\\\"/\"}"
}

# plan.json has one value in a line, and the sources of a layer after its options.
mapfile -t lines <"$folder/plan.json"
for line in "${lines[@]}"; do
  line=${line#"${line%%[! ]*}"}
  case $line in
    '"layer": "'*) set_text "${line#*: }" && layer=$text options=() ;;
    '"'*'": {') set_text "${line%: \{}" && name=${text//-/_} ;;
    '"value": '*) set_text "${line#*: }" && options+=("OPT_${name^^}=$text") ;;
    '"sources": ['*) run_test ;;
  esac
done
