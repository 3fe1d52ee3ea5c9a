# shellcheck shell=sh
# Run what an engine's container was given in /.sifwright as %post of a definition file would be: the
# base image's own environment is not seen. What it leaves for later steps is said, and nothing of it
# stays in the image. The arguments are for the image's history: LAYER STEP
status=0
umask 022
mkdir -p /opt/sifwright
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh /.sifwright/run || status=$?
for file in /.sifwright/kept/*; do
  [ ! -f "$file" ] || echo "sifwright: kept ${file##*/} $(base64 -w 0 <"$file")"
done
cd / && rm -rf /.sifwright
exit "$status"
