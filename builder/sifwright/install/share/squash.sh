# The user's packages as a folder or as one file. The target of user-software.current decides:
#
#   share/sifwright/directory.squashfs   the folder user-software holds them
#   user-software.squashfs               that file does, and the folder is empty; it stays, because
#                                        modules that are loaded bind it
#
# Each step leaves the one or the other whole, so a kill at any moment loses nothing. The folder
# user-software.old is there while the folder is emptied, user-software.placing while it is filled.
#
# shellcheck shell=bash source=packages.sh

name_parts() {
  FILE=$FOLDER.squashfs
  OLD=$FOLDER.old
  PLACING=$FOLDER.placing
}

is_squashed() { [[ $(readlink "$CURRENT") == user-software.squashfs ]]; }

point_to() { # point_to TARGET
  local -r new=$CURRENT.new.$$
  ln -sfT "$1" "$new"
  mv -T "$new" "$CURRENT"
}

remove() { # remove PATH...: what is open on NFS stays, under another name, until it is closed
  local path
  for path; do
    [[ -e $path || -L $path ]] || continue
    [[ ! -d $path || -L $path ]] || chmod -R u+rwX "$path"
    rm -rf "$path" || say "could not remove all of $path; the next run tries again"
  done
}

# Remains of killed runs. Called with the lock held: no other process is at work.
tidy() {
  shopt -s nullglob dotglob
  remove "$FOLDER".gone.* "$FOLDER".squashfs.new.* "$FOLDER".new.* "$CURRENT".new.* "$FOLDER"/.making.*
  if is_squashed; then
    [[ -e $FILE ]] || fail "there is no $FILE, where the packages were: put it back, or remove $CURRENT" \
      "and install them again"
    if [[ -d $OLD ]]; then empty_folder; fi
  else
    remove "$OLD" "$PLACING"
  fi
}

# A folder that modules bind is never missing, so its entries go, not itself.
empty_folder() {
  local entry
  mkdir -p "$OLD"
  for entry in "$FOLDER"/*; do mv -T "$entry" "$OLD/${entry##*/}.$$"; done
  mv -T "$OLD" "$FOLDER.gone.$$"
  remove "$FOLDER.gone.$$"
}

# --- packing --------------------------------------------------------------------------------------

system_program() { # system_program NAME: also where ordinary users' PATH does not lead
  PATH=$PATH:/usr/sbin:/sbin type -P "$1"
}

# No extended attributes: Lustre's own are of no use in there. A quarter of the node's memory, which
# mksquashfs takes by default, is often more than a login node grants.
readonly PACK_OPTIONS=(-noappend -no-progress -quiet -no-xattrs -mem 256M)

pack() { # pack FILE COMPRESSOR
  local program
  local -r options=("${PACK_OPTIONS[@]}" -comp "$2" -processors "$(nproc)")
  if program=$(system_program mksquashfs); then
    "$program" "$FOLDER" "$1" "${options[@]}"
  elif image_has_mksquashfs; then
    with_home mksquashfs /.home/user-software "/.home/${1##*/}" "${options[@]}"
  else
    fail "there is no mksquashfs, neither here nor in the image: ask for the package squashfs-tools"
  fi
}

unpack() { # unpack FOLDER
  local program
  if program=$(system_program unsquashfs); then
    "$program" -quiet -no-progress -no-xattrs -dest "$1" "$FILE"
  else
    enter
    with_home cp -a /user-software "/.home/${1##*/}"
  fi
}

image_has_mksquashfs() { (become sh -c 'command -v mksquashfs') >/dev/null; }

with_home() { "${PROGRAM:?}" exec --bind "$HOME_OF:/.home" "$IMAGE" "$@"; }

# Every name, read in a container as it will be: the engine can mount it, and nothing is missing.
holds_all() { # holds_all FILE
  local there here
  there=$("$PROGRAM" exec --bind "$1:/user-software:image-src=/,ro" "$IMAGE" \
    sh -c 'cd /user-software && find .' | LC_ALL=C sort | cksum) || return 1
  here=$(cd "$FOLDER" && find . | LC_ALL=C sort | cksum)
  [[ $there == "$here" ]]
}
