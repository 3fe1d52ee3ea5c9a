#!/bin/bash
# Run one layer's install.sh in a bash of its own, so that nothing leaks into the next layer but
# what its header declares, and name the line it fails in. Usage: step LAYER [shell]
# With `shell`, a shell in that state takes the place of the script, and nothing is cleaned up.
set -euo pipefail

export SIFWRIGHT_LAYER=$1 SIFWRIGHT_BUILD=/.sifwright
export TMPDIR=$SIFWRIGHT_BUILD/tmp HOME=$SIFWRIGHT_BUILD/tmp APT_CONFIG=$SIFWRIGHT_BUILD/apt.conf
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
export PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1 PIP_PROGRESS_BAR=off GIT_TERMINAL_PROMPT=0
umask 022

machine=$SIFWRIGHT_BUILD/machine
# pip, conda and fetch-source find the logins of mirrors here; no argument of a program holds one.
export NETRC=$machine/netrc
# What a layer leaves here, the builds of later layers find, also where its own result comes from a cache.
mkdir -p "$SIFWRIGHT_BUILD/kept"
touch "$SIFWRIGHT_BUILD/kept/apt.conf"
# shellcheck source=/dev/null
[[ ! -f $machine/environment ]] || . "$machine/environment"
# Of several indexes that have the same wheel, pip takes the last one: what the machine has fetched already.
if [[ -d $SIFWRIGHT_BUILD/fetched/wheels ]]; then
  export PIP_EXTRA_INDEX_URL="${PIP_EXTRA_INDEX_URL:-} file://$SIFWRIGHT_BUILD/fetched/wheels"
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
# A mirror in a bound folder belongs to somebody else, and may serve submodules: what is fetched is
# compared with its pin. A server that says nothing for a minute is given up.
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
# A recipe of others means what its programs leave there, such as weights of a model; so do the layers
# that come after it.
[[ ! -e files/keeps-caches ]] || : >"$SIFWRIGHT_BUILD/kept/keeps-caches"
if [[ ! -e $SIFWRIGHT_BUILD/kept/keeps-caches ]]; then
  rm -rf /root/.cache
  [[ ! -d /var/log ]] || find /var/log -type f -delete
fi
# Not from a folder that is gone: proot starts no program there.
layer_folder=$PWD
cd "$SIFWRIGHT_BUILD"
rm -rf "${TMPDIR:?}"/* "$layer_folder"
# What apt leaves in a layer that runs it by itself, and the bytecode of what only installs.
shopt -s nullglob
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb
installers=(/opt/{*,conda/envs/*}/lib/python3*/site-packages/{pip,setuptools,pkg_resources,wheel})
((${#installers[@]} == 0)) || find "${installers[@]}" -depth -name __pycache__ -exec rm -rf {} +
echo "sifwright: end $SIFWRIGHT_LAYER"
