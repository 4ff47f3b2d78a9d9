#!/bin/sh
# Put Debian's Prometheus server and promtool below build/prometheus, for the tests that let them read our metrics. Nothing is
# installed: the package would bring a service that starts by itself. Where there is no apt the tests are skipped.
set -eu
cd "$(dirname "$0")/.."
command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1 && exit 0
[ -x build/prometheus/usr/bin/promtool ] && exit 0
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# As root, apt fetches as another user, who must be able to write here.
chmod 755 "$folder"
[ "$(id -u)" = 0 ] && chown _apt "$folder" 2>/dev/null || true
(
  cd "$folder"
  apt-get download -qq prometheus >/dev/null 2>&1 || {
    [ "$(id -u)" = 0 ] && apt-get update -qq >/dev/null 2>&1
    apt-get download -qq prometheus >/dev/null 2>&1
  }
) || { echo "Could not fetch Prometheus; the tests with a real server are skipped."; exit 0; }
mkdir -p build/prometheus
dpkg-deb --fsys-tarfile "$folder"/prometheus_*.deb | tar -x -C build/prometheus ./usr/bin
