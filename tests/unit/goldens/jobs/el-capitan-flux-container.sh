#!/bin/bash
# flux: --job-name=train
# flux: --nodes=2
# flux: --exclusive
# flux: --queue=pbatch
# flux: --time-limit=1800s
# flux: --setattr=rdzv_get_en=0
#
# Site el-capitan: 2 nodes, 4 ranks on each. Written by sifwright; submit it with flux batch.
set -euo pipefail

# Rank 0's host, which Flux tells no task (flux-hostlist(1): the hosts of this batch job's instance)
[[ -v SIFWRIGHT_MASTER_HOST ]] || SIFWRIGHT_MASTER_HOST=$(flux hostlist --nth=0 instance)
export SIFWRIGHT_MASTER_HOST

# The image, for the site's container engine
IMAGE=${IMAGE:-/project/build/image.sif}
if [[ $IMAGE == localhost/* ]] && ! podman image exists "$IMAGE"; then
  echo "job: podman has no image '$IMAGE': load it ('podman load --input FILE'), or name one in IMAGE" >&2
  exit 66
fi
unset LD_LIBRARY_PATH LD_PRELOAD # of the host's programs

# Folders of the host in the container, under their own names, as far as they are there
sources=() bound=,
add_mount() {
  local target=${1#*:}
  target=${target%%:*}
  [[ -e ${1%%:*} && $bound != *,"$target",* ]] || return 0
  sources+=("${1%%:*}:$target") bound+=$target,
}
for entry in "$PWD" "${HOME:-$PWD}" /tmp \
  ; do
  add_mount "$entry"
done
mounts=() devices=()
for entry in "${sources[@]}"; do
  mounts+=("--volume=$entry")
done
for entry in /dev/cxi*; do
  [[ ! -e $entry ]] || devices+=("--device=$entry")
done

flux run --nodes=2 --ntasks=8 --cores-per-task=24 --gpus-per-task=1 -ofastload=on \
  --setattr=rdzv_get_en=0 \
  podman run --rm --env-host \
  --env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --network=host \
  --ipc=host --workdir="$PWD" "${devices[@]}" "${mounts[@]}" --device=/dev/kfd --device=/dev/dri \
  "$IMAGE" \
  conda-python-distributed train.py --epochs 3 --note 'it'"'"'s'
