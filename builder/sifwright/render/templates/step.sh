#!/bin/bash
# Run one layer's install.sh in a bash of its own, and name the line that fails. Usage: step LAYER [shell]
# Only the variables of the layer's header reach the next layer.
# With `shell`, open a shell in that state instead, and clean up nothing.
set -euo pipefail

export SIFWRIGHT_LAYER=$1 SIFWRIGHT_BUILD=${0%/*}
# In an image, packages go below /opt and run scripts below /. A native installation has all below one folder.
export INSTALL_PREFIX=/opt IMAGE_ROOT=
if [[ -f $SIFWRIGHT_BUILD/prefix ]]; then
  read -r INSTALL_PREFIX <"$SIFWRIGHT_BUILD/prefix"
  IMAGE_ROOT=$INSTALL_PREFIX
fi
export TMPDIR=$SIFWRIGHT_BUILD/tmp HOME=$SIFWRIGHT_BUILD/tmp APT_CONFIG=$SIFWRIGHT_BUILD/apt.conf
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
export PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1 PIP_PROGRESS_BAR=off GIT_TERMINAL_PROMPT=0
umask 022

machine=$SIFWRIGHT_BUILD/machine
# pip, conda and fetch-source find the logins of mirrors here; no argument of a program holds one.
export NETRC=$machine/netrc
# Files that a layer writes to this folder reach later layers, also in later builds.
mkdir -p "$SIFWRIGHT_BUILD/kept"
touch "$SIFWRIGHT_BUILD/kept/apt.conf"
# shellcheck source=/dev/null
[[ ! -f $machine/environment ]] || . "$machine/environment"
# pip takes a wheel from the last index that has it: here the wheels that the build has downloaded.
if [[ -d $SIFWRIGHT_BUILD/fetched/wheels ]]; then
  export PIP_EXTRA_INDEX_URL="${PIP_EXTRA_INDEX_URL:-} file://$SIFWRIGHT_BUILD/fetched/wheels"
fi
# The time that programs write instead of today's, where the layer is packed to be the same every day.
if [[ -f $machine/epoch ]]; then
  read -r SOURCE_DATE_EPOCH <"$machine/epoch"
  export SOURCE_DATE_EPOCH PYTHONHASHSEED=0
fi
{
  cat "$machine/apt.conf" 2>/dev/null || true
  printf '#include "%s/kept/apt.conf";\n' "$SIFWRIGHT_BUILD"
} >"$APT_CONFIG"
if [[ -f $machine/ca.crt ]]; then
  export SSL_CERT_FILE=$machine/ca.crt REQUESTS_CA_BUNDLE=$machine/ca.crt PIP_CERT=$machine/ca.crt
  export CURL_CA_BUNDLE=$machine/ca.crt GIT_SSL_CAINFO=$machine/ca.crt
  grep -qs CaInfo "$APT_CONFIG" || printf 'Acquire::https::CaInfo "%s";\n' "$SSL_CERT_FILE" >>"$APT_CONFIG"
fi
# A mirror in a bound folder belongs to another user, and may serve submodules. Every source is compared
# with its pin. A transfer that stalls for a minute ends.
cat - "$machine/gitconfig" 2>/dev/null >"$HOME/.gitconfig" <<'GIT' || true
[safe]
	directory = *
[protocol "file"]
	allow = always
[http]
	lowSpeedLimit = 1000
	lowSpeedTime = 60
GIT

cd "$SIFWRIGHT_BUILD/layers/$SIFWRIGHT_LAYER"
if [[ ${2:-} == shell ]]; then
  PATH=$SIFWRIGHT_BUILD/bin:$PATH exec bash
fi
echo "sifwright: begin $SIFWRIGHT_LAYER"
status=0
PATH=$SIFWRIGHT_BUILD/bin:$PATH BASH_ENV=$SIFWRIGHT_BUILD/trap bash ./install.sh 9>&1 || status=$?
if ((status != 0)); then
  echo "sifwright: failed $SIFWRIGHT_LAYER $status"
  exit "$status"
fi
# An imported recipe may keep files there, such as the weights of a model. Layers after it keep them, too.
[[ ! -e files/keeps-caches ]] || : >"$SIFWRIGHT_BUILD/kept/keeps-caches"
if [[ -z $IMAGE_ROOT && ! -e $SIFWRIGHT_BUILD/kept/keeps-caches ]]; then
  rm -rf /root/.cache
  [[ ! -d /var/log ]] || find /var/log -type f -delete
fi
# proot starts no program in a folder that was removed.
layer_folder=$PWD
cd "$SIFWRIGHT_BUILD"
rm -rf "${TMPDIR:?}"/* "$layer_folder"
# Remove leftovers of apt, if the layer ran it by itself. Remove ldconfig's notes of inodes and times, and
# the bytecode of packages that only install.
shopt -s nullglob
[[ -n $IMAGE_ROOT ]] ||
  rm -rf /var/lib/apt/lists/* /var/cache/{apt/*.bin,apt/archives/*.deb,ldconfig/aux-cache}
installers=("$INSTALL_PREFIX"/{*,conda/envs/*}/lib/python3*/site-packages/{pip,setuptools,pkg_resources,wheel})
((${#installers[@]} == 0)) || find "${installers[@]}" -depth -name __pycache__ -exec rm -rf {} +
echo "sifwright: end $SIFWRIGHT_LAYER"
