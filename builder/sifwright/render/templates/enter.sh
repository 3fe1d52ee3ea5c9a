# shellcheck shell=sh
# Run the script in /.sifwright of an engine's container, as %post of a definition file would run. Print the
# files for later steps, and remove the folder. The name of Debian's archive stays until the last step.
# The arguments are for the image's history: LAYER STEP
status=0
umask 022
mkdir -p /opt/sifwright
# Keep the base image's environment for the layers of imported recipes (recipe.sh).
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
