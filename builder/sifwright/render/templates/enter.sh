# shellcheck shell=sh
# Run what an engine's container was given in /.sifwright as %post of a definition file would be. What it
# leaves for later steps is said, and nothing of it stays in the image but, until the last step, the name of
# Debian's archive. The arguments are for the image's history: LAYER STEP
status=0
umask 022
mkdir -p /opt/sifwright
# What the base image says, for steps of imported recipes (recipe.sh).
env -0 >/.sifwright/base-environment
# shellcheck source=/dev/null
. /.sifwright/surround
sh /.sifwright/run || status=$?
for file in /.sifwright/kept/*; do
  [ ! -f "$file" ] || echo "sifwright: kept ${file##*/} $(base64 -w 0 <"$file")"
done
cd / || exit
if [ -f /.sifwright/archive ]; then
  for file in /.sifwright/*; do
    [ "$file" = /.sifwright/archive ] || rm -rf "$file"
  done
else
  rm -rf /.sifwright
fi
exit "$status"
