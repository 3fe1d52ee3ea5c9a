# shellcheck shell=sh
# Bring the settings of the building machine (certificates, proxies, pip's and apt's settings) into
# a folder that %post removes at its end. `sifwright build` prepares that folder, and by hand it is
# the one that SIFWRIGHT_MACHINE names (`sifwright host-settings` makes it) or made from the environment.
# Apptainer gives both names, SingularityCE the second; without one, this would be the machine itself.
rootfs=${APPTAINER_ROOTFS:-${SINGULARITY_ROOTFS:?names the image; %setup runs on the machine itself}}
if [ "$(cd "$rootfs" && pwd -P)" = / ]; then
  echo "sifwright: the image's folder is /, the machine itself" >&2
  exit 1
fi
# What lies behind a link of the image's is the machine's own; the engine writes below the second.
links=
for name in etc .singularity.d; do
  [ ! -L "$rootfs/$name" ] || links=$name
done
if [ -z "$links" ] && [ -d "$rootfs/.singularity.d" ]; then
  links=$(cd "$rootfs" && find .singularity.d -type l)
fi
if [ -n "$links" ]; then
  echo "sifwright: links of the base image, which may lead out of it: start from another: $links" >&2
  exit 1
fi
build="$rootfs/.sifwright"
# An image may bring one of its own, which is a link or has some in it.
rm -rf "$build"
mkdir -p "$build/machine" "$build/tmp" "$build/layers"
# debootstrap copies these from the machine; a link might lead back to the machine's own file.
for file in hostname resolv.conf hosts; do
  if [ -f "$rootfs/etc/$file" ] && [ ! -L "$rootfs/etc/$file" ]; then
    : >"$rootfs/etc/$file"
  fi
done
if [ -n "${SIFWRIGHT_MACHINE:-}" ]; then
  cp -R "$SIFWRIGHT_MACHINE/." "$build/machine/"
else
  quote() { printf "%s" "$1" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"; }
  {
    set +x
    for name in http_proxy https_proxy no_proxy all_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY \
      ALL_PROXY PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_PROXY PIP_TIMEOUT \
      PIP_DEFAULT_TIMEOUT PIP_RETRIES PIP_NO_INDEX MAX_JOBS; do
      eval "value=\${$name:-}"
      [ -z "$value" ] || printf 'export %s=%s\n' "$name" "$(quote "$value")"
    done
    folders=
    for folder in ${PIP_FIND_LINKS:-}; do
      case $folder in
        *://*) folders="$folders $folder" ;;
        *) mkdir -p "$build/machine/wheels"
          for file in "$folder"/*.whl "$folder"/*.tar.gz; do
            [ ! -f "$file" ] || cp "$file" "$build/machine/wheels/"
          done
          folders="$folders /.sifwright/machine/wheels" ;;
      esac
    done
    [ -z "$folders" ] || printf 'export PIP_FIND_LINKS=%s\n' "$(quote "${folders# }")"
    for bundle in "${SSL_CERT_FILE:-}" "${PIP_CERT:-}" "${REQUESTS_CA_BUNDLE:-}" \
      "${CURL_CA_BUNDLE:-}" /etc/ssl/certs/ca-certificates.crt \
      /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem; do
      [ -f "$bundle" ] || continue
      cp "$bundle" "$build/machine/ca.crt"
      break
    done
  } >"$build/machine/environment"
  if command -v apt-config >/dev/null; then
    apt-config dump | grep -E '^Acquire::(http|https|ftp|Retries)' |
      grep -vi 'CaInfo\|Cert\|Key' >"$build/machine/apt.conf" || true
    # The first mirror of each archive of Debian, as `mirrored` reads it.
    # shellcheck disable=SC2016  # apt's own format
    apt-get indextargets --format '$(LABEL)|$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' |
      sed -n -e '/[@?]/d' -e 's#/*$##' -e 's#^Debian|Debian|#debian #p' \
        -e 's#^Debian-Security|Debian|#debian-security #p' |
      awk '!seen[$1]++' >"$build/machine/mirrors" || true
  fi
fi
