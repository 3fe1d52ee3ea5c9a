#!/bin/bash
# Put the run scripts where LUMI's images have them.
set -euo pipefail

mkdir /runscripts
cp -r runscripts/. /runscripts/
