#!/bin/bash
# Put the run scripts where LUMI's images have them, and the site's environment where they read it.
set -euo pipefail

mkdir -p "$IMAGE_ROOT/runscripts" "$IMAGE_ROOT/etc/sifwright"
# A base image, such as ours or LUMI's, may have run scripts. Files and folders of the same names
# are replaced as a whole.
(cd runscripts && for name in *; do rm -rf "$IMAGE_ROOT/runscripts/$name"; done)
cp -r runscripts/. "$IMAGE_ROOT/runscripts/"
cp site-environment "$IMAGE_ROOT/etc/sifwright/site-environment"

# The image is read-only, so Python could not keep bytecode later. Unchecked bytecode depends on no time
# stamp.
python -m compileall -q --invalidation-mode unchecked-hash "$IMAGE_ROOT/runscripts"
