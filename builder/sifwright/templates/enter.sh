# shellcheck shell=sh
# Run what an engine's container was given in /.sifwright, say what that leaves for later steps, and
# leave nothing of it in the image. The arguments are for the image's history: LAYER STEP
status=0
sh /.sifwright/run || status=$?
for file in /.sifwright/kept/*; do
  [ ! -f "$file" ] || echo "sifwright: kept ${file##*/} $(base64 -w 0 <"$file")"
done
rm -rf /.sifwright
exit "$status"
