# shellcheck shell=sh
# What %setup does elsewhere. The settings of the building machine are those that SINGULARITY_BINDPATH
# puts at /mnt/machine (`sifwright host-settings` writes them); without a bind there are none.
rm -rf /.sifwright
mkdir -p /.sifwright/machine /.sifwright/tmp /.sifwright/layers
if [ -d /mnt/machine ]; then cp -R /mnt/machine/. /.sifwright/machine/; fi
