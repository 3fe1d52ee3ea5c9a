# Who is at work on the user's packages: a lock, leases, and processes of this node.
# shellcheck shell=bash

# HOST:PROCESS:START:BOOT:USER:COMMAND. Without the start, a process id that is used again would pass.
identity() {
  local host boot
  host=$(</proc/sys/kernel/hostname)
  boot=$(</proc/sys/kernel/random/boot_id)
  printf '%s:%s:%s:%s:%s:%s\n' "$host" "$$" "$(start_of "$$")" "${boot%%-*}" "$(id -un)" "$NAME"
}

start_of() { # start_of PROCESS: field 22 of proc(5); the command's name before it may hold blanks
  local line
  local -a fields
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 0
  read -ra fields <<<"${line##*) }"
  printf '%s\n' "${fields[19]}"
}

# Only of processes of this node can that be said.
is_gone() { # is_gone IDENTITY
  local host process start boot now
  IFS=: read -r host process start boot _ <<<"$1"
  [[ $host == "$(</proc/sys/kernel/hostname)" ]] || return 1
  now=$(</proc/sys/kernel/random/boot_id)
  [[ $boot != "${now%%-*}" || $start != "$(start_of "$process")" ]]
}

in_words() { # in_words IDENTITY
  local host process user command
  IFS=: read -r host process _ _ user command <<<"$1"
  printf '%s of %s (process %s on %s)\n' "$command" "$user" "$process" "$host"
}

# --- the lock: a symbolic link, made with its text in one step on every file system ---------------

take_lock() { # take_lock --wait|--no-wait
  LOCK=$FOLDER.lock
  MINE=$(identity)
  local held announced=
  trap give_back EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  until ln -sT "$MINE" "$LOCK" 2>/dev/null; do
    held=$(readlink "$LOCK") || { can_lock; continue; }
    [[ $held != "$MINE" ]] || break # an NFS server's answer was lost, and the request repeated
    if is_gone "$held"; then
      break_lock "$held"
      continue
    fi
    [[ $1 == --wait ]] || fail "$(in_words "$held") is at work on $FOLDER: wait for it." \
      "If it does not run any more: rm '$LOCK'"
    [[ -n $announced ]] || say "waiting for $(in_words "$held"). If it does not run any more: rm '$LOCK'"
    announced=yes
    sleep 0.5
  done
}

# Nobody holds it: it was given back meanwhile, or this folder takes none.
can_lock() {
  local -r trial=$LOCK.$$
  ln -sT "$MINE" "$trial" || fail "cannot write into $HOME_OF"
  rm -f "$trial"
}

# Move the lock first, because only one of two processes can move a stale lock. Put back a lock that is new.
break_lock() { # break_lock IDENTITY
  local -r aside=$LOCK.$$
  mv -T "$LOCK" "$aside" 2>/dev/null || return 0
  local -r moved=$(readlink "$aside")
  [[ $moved == "$1" ]] || ln -sT "$moved" "$LOCK" 2>/dev/null || true
  rm -f "$aside"
}

# Also what pytorch-pip downloaded to.
give_back() {
  [[ -z ${TEMPORARY:-} ]] || rm -rf "$TEMPORARY"
  [[ -z ${LEASE:-} ]] || rm -f "$LEASE"
  if [[ -n ${LOCK:-} && $(readlink "$LOCK") == "$MINE" ]]; then rm -f "$LOCK"; fi
}

# --- leases of shells: files named after their holders --------------------------------------------

take_lease() { # where nothing can be written, nothing will be packed either
  { [[ -d $FOLDER && -w $HOME_OF ]] && mkdir -p "$FOLDER.leases"; } 2>/dev/null || return 0
  LEASE=$FOLDER.leases/$(identity)
  { : >"$LEASE"; } 2>/dev/null || LEASE=
  trap give_back EXIT
}

leases() {
  local file
  for file in "$FOLDER.leases"/*; do
    [[ -e $file ]] || continue
    if is_gone "${file##*/}"; then
      rm -f "$file"
    else
      printf '%s; if it does not run any more: rm %q\n' "$(in_words "${file##*/}")" "$file"
    fi
  done
}

# --- processes of this node -----------------------------------------------------------------------

command_of() { # command_of PROCESS
  local words
  words=$(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null) || true
  printf 'process %s: %s\n' "$1" "${words:0:70}"
}

# Processes with the folder as /.user-software in their container, or with a file of it open.
processes_of_folder() {
  local entry process real
  real=$(realpath "$FOLDER")
  for entry in /proc/[0-9]*; do
    process=${entry#/proc/}
    [[ $process != "$$" && $entry/root/.user-software -ef $FOLDER ]] || continue
    printf '%s\n' "$process"
  done
  find /proc/[0-9]*/{cwd,exe,fd} -maxdepth 1 -printf '%p %l\n' 2>/dev/null | holders "$real"
  grep -lF -- " $real/" /proc/[0-9]*/maps 2>/dev/null | cut -d / -f 3
}

# squashfuse has it open; without it, the kernel has it as a loop device.
processes_of_file() { # processes_of_file FILE
  local descriptor
  for descriptor in /proc/[0-9]*/fd/*; do
    if [[ $descriptor -ef $1 ]]; then cut -d / -f 3 <<<"$descriptor"; fi
  done
  if grep -qxF -- "$(realpath "$1")" /sys/block/loop*/loop/backing_file 2>/dev/null; then
    printf '%s\n' "$PPID"
  fi
}

# Lines `/proc/PROCESS/… TARGET` with the folder, or a path below it, as target.
holders() { # holders FOLDER
  local link target
  while read -r link target; do
    [[ $target != "$1" && $target != "$1"/* ]] || cut -d / -f 3 <<<"$link"
  done
}

# Processes on other nodes are invisible here, so every job there counts except this one.
jobs_elsewhere() {
  local job title nodes
  type -P squeue >/dev/null || return 0
  while IFS='|' read -r job title nodes; do
    [[ -n $job && $job != "${SLURM_JOB_ID:-}" && $nodes != "${HOSTNAME%%.*}" ]] || continue
    printf 'job %s (%s) on %s, which may use it\n' "$job" "$title" "$nodes"
  done < <(timeout 20 squeue --noheader --me --states=RUNNING --format='%A|%j|%N' 2>/dev/null)
}

users() { # users PROGRAM...: everybody at work, a line each
  local process
  leases
  jobs_elsewhere
  while read -r process; do
    [[ $process == "$$" || $process == "$BASHPID" || ! -d /proc/$process ]] || command_of "$process"
  done < <("$@" | sort -un)
}

refuse_in_use() { # refuse_in_use PROGRAM...
  [[ -z ${FORCE:-} ]] || return 0
  local processes
  processes=$(users "$@")
  [[ -z $processes ]] || fail "user-software in $HOME_OF is in use:
$processes
End these first, or, if they can be disturbed, use --force."
}
