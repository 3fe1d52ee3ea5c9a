# shellcheck shell=sh
# Prepare a step in an OCI image. Add the usual folders to PATH, as Apptainer does (tried on 1.4.5). Map
# the archive of its Debian to this machine's mirror.
for folder in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
  case :$PATH: in
    *":$folder:"*) ;;
    *) PATH=$PATH:$folder ;;
  esac
done
export PATH
if [ -f /.sifwright/archive ] && [ -d /.sifwright/machine ]; then
  mirror=$(SIFWRIGHT_BUILD=/.sifwright /.sifwright/bin/mirrored debian)
  if [ "$mirror" != debian ]; then
    printf '%s %s\n' "$(cat /.sifwright/archive)" "$mirror" >>/.sifwright/machine/mirrors
  fi
fi
