# shellcheck shell=sh
# What steps see of an OCI image that they run in, whoever builds: its own environment with its path
# completed as Apptainer does (tried on 1.4.5), and the archive that its Debian was made from.
for folder in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
  case :$PATH: in
    *":$folder:"*) ;;
    *) PATH=$PATH:$folder ;;
  esac
done
export PATH
if [ -f /.sifwright/archive ] && [ -d /.sifwright/machine ]; then
  # Where this machine finds that archive.
  found=$(SIFWRIGHT_BUILD=/.sifwright /.sifwright/bin/mirrored debian)
  if [ "$found" != debian ]; then
    printf '%s %s\n' "$(cat /.sifwright/archive)" "$found" >>/.sifwright/machine/mirrors
  fi
fi
