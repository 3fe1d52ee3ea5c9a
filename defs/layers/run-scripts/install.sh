#!/bin/bash
# Put the run scripts where LUMI's images have them, and the site's environment where they read it.
set -euo pipefail

mkdir -p "$IMAGE_ROOT/runscripts" "$IMAGE_ROOT/etc/sifwright"
# A base image may have some (one of ours, one of LUMI's): those of the same names give way as a whole.
(cd runscripts && for name in *; do rm -rf "$IMAGE_ROOT/runscripts/$name"; done)
cp -r runscripts/. "$IMAGE_ROOT/runscripts/"
cp site-environment "$IMAGE_ROOT/etc/sifwright/site-environment"

# The image is read-only, so that Python could not keep bytecode later; unchecked, so that it depends
# on no time stamp.
python -m compileall -q --invalidation-mode unchecked-hash "$IMAGE_ROOT/runscripts"
