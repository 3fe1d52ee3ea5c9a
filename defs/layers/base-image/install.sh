#!/bin/bash
# Find the image's Python and torch and compare them with the plan. Remove everything that would keep
# NCCL from the site's network.
set -euo pipefail

# File in which Apptainer keeps the environment of an image from a registry.
readonly docker_env=/.singularity.d/env/10-docker2singularity.sh
readonly own=/opt/base-image

die() {
  printf '%s: %s\n' "$OPT_FROM" "$1" >&2
  exit 1
}

# An image of ours has no sources for apt, because those of the machine serve the build only (base-debian).
if command -v apt-get >/dev/null && [[ -z $(apt-get indextargets --no-release-info) ]]; then
  . /etc/os-release
  archive=$(mirrored debian)
  if [[ $ID == debian && $archive != debian ]]; then
    security=$(mirrored debian-security)
    [[ $security != debian-security ]] || security=${archive%/}-security
    printf 'deb %s main\n' "$archive $VERSION_CODENAME" "$archive $VERSION_CODENAME-updates" \
      "$security $VERSION_CODENAME-security" >"$SIFWRIGHT_BUILD/kept/sources.list"
    printf 'Dir::Etc::sourcelist "%s/kept/sources.list";\n' "$SIFWRIGHT_BUILD" >>"$SIFWRIGHT_BUILD/kept/apt.conf"
  fi
fi

if [[ $OPT_UPDATES == true ]]; then
  if command -v apt-get >/dev/null; then
    apt-install --upgrade
  else
    rpm-upgrade || die "base-image.updates needs a package manager with repositories; leave that out"
  fi
fi

# Without the build's own programs, which come first.
image_path=${PATH#"$SIFWRIGHT_BUILD/bin:"}
if [[ -f $docker_env ]]; then
  # shellcheck source=/dev/null
  image_path=$(set +u && unset PATH && . "$docker_env" >/dev/null && printf '%s' "${PATH:-}")
fi
image_path=${image_path:-/usr/local/bin:/usr/bin:/bin}
find_python() {
  local PATH=$image_path:/usr/local/bin:/usr/bin:/bin
  command -v python || command -v python3
}
python=${OPT_PROGRAM:-$(find_python)} || die "no Python on its path"
[[ -x $python ]] || die "there is no $python"
# Use its name on the path: a Python of conda or of a virtual environment is a link in there.
folder=${python%/*}
case :$image_path: in
  *":$folder:"*) ;;
  *) image_path=$folder:$image_path ;;
esac

# The toolkit only where torch says it: without, nothing else in the image is asked.
read -r found_python found_torch full_torch found_toolkit < <("$python" - <<'PYTHON'
import re
import sys

python = "%d.%d" % sys.version_info[:2]
try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    print(python, "none", "none", "none")
else:
    public = re.match(r"\d+\.\d+\.\d+", torch.__version__)
    toolkit = torch.version.cuda or torch.version.hip or "none"
    release = public.group(0) if public else torch.__version__
    print(python, release, torch.__version__, ".".join(toolkit.split(".")[:2]))
PYTHON
) || die "its Python, $python, does not run, or its torch cannot be imported"
same() { [[ $2 == "$3" ]] || die "has $1 $3, not $2: set base-image.$1=$3"; }
same python "$OPT_PYTHON" "$found_python"
same torch "${OPT_TORCH:-none}" "$found_torch"
if [[ -n $OPT_TORCH ]]; then
  toolkit=${OPT_CUDA:-$OPT_ROCM}
  same toolkit "${toolkit:-none}" "$found_toolkit"
fi

mkdir -p "$own/bin"
# Later layers install into that Python itself. It must have pip, and its distribution must not keep it
# for itself (PEP 668).
may_install() {
  "$python" -m pip --version && ! "$python" - <<'PYTHON'
import os
import sys
import sysconfig

marked = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
sys.exit(not (marked and sys.prefix == sys.base_prefix))
PYTHON
}
make_environment() { "$python" -m venv --system-site-packages "$own/venv"; }
if ! may_install >/dev/null 2>&1; then
  if ! make_environment >/dev/null 2>&1; then
    rm -rf "$own/venv"
    { command -v apt-get && apt-install python3-venv && make_environment; } >/dev/null || rm -rf "$own/venv"
  fi
  if [[ -d $own/venv ]]; then
    python=$own/venv/bin/python
    image_path=$own/venv/bin:$image_path
  elif [[ -z $OPT_TORCH ]]; then
    die "nothing can be installed in $python: it has no pip of its own, and no venv (python3-venv) can be had"
  fi
fi

# Wrappers, not links: a linked Python of a virtual environment does not find its packages.
for name in python python3; do
  printf '#!/bin/sh\nexec %q "$@"\n' "$python" >"$own/bin/$name"
done
for name in pip pip3; do
  printf '#!/bin/sh\nexec %q -m pip "$@"\n' "$python" >"$own/bin/$name"
done
chmod 755 "$own"/bin/*
# The image may name an environment of its own, in which these wrappers do not lie.
printf 'unset VIRTUAL_ENV CONDA_PREFIX\nexport PATH=%s/bin:%q\n' "$own" "$image_path" >"$own/activate"

# Remove plugins for other networks, and the variables that lead NCCL to them. NGC of 2026 has
# NCCL_NET_PLUGIN, and folders below /opt/amazon and /opt/hpcx.
# Source: eth-cscs/alps-extended-images@2f16898, profile.env.
read -ra variables <<<"$OPT_UNSET"
for name in "${variables[@]}"; do
  [[ ! -f $docker_env ]] || sed -i -E "/^[[:space:]]*(export[[:space:]]+)?$name=/d" "$docker_env"
  # An image of Docker's keeps these variables; a value that another program sets there stays.
  # shellcheck disable=SC2016
  [[ -z ${!name-} ]] || printf '[ "${%s-}" != %q ] || unset %s\n' "$name" "${!name}" "$name" >>"$own/activate"
done
read -ra plugins <<<"$OPT_PLUGINS"
for plugin in "${plugins[@]}"; do
  # A library goes with the links to it and the versions behind it.
  case $plugin in
    *.so*) rm -f "${plugin%%.so*}".so* ;;
    *) rm -rf "$plugin" ;;
  esac
  for list in /etc/ld.so.conf.d/*; do
    [[ ! -f $list ]] || sed -i "\#^$plugin\(/\|\$\)#d" "$list"
  done
done
# Same as base-cuda: a libcuda of the image must not hide the host's.
rm -rf /usr/local/cuda/compat /usr/local/cuda-*/compat
rm -f /etc/ld.so.conf.d/*cuda-compat*
PATH=$PATH:/usr/sbin:/sbin
! command -v ldconfig >/dev/null || ldconfig

if [[ -n $OPT_TORCH ]]; then
  printf 'torch==%s\n' "$full_torch" >>/opt/sifwright/constraints.txt
else
  touch /opt/sifwright/constraints.txt
fi
