#!/bin/sh
# Install what Qt needs from the system and the Python wheels cannot bring. Debian and Ubuntu only; elsewhere it says nothing
# where Qt loads. Usage: system_packages.sh window|tests
# The list was found in an empty Debian 12 with ldd on Qt's plugins; Chinese needs one font that has its glyphs.
set -eu
what=${1:-window}
[ "$(uname -s)" = Linux ] || exit 0

window="libegl1 libgl1 libdbus-1-3 libfontconfig1 libglib2.0-0 libxkbcommon0 libxkbcommon-x11-0 libxcb-cursor0
 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libx11-xcb1 libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-xkb1
 libxcb-xfixes0 libxcb-sync1"
tests="xvfb xauth fonts-dejavu-core fonts-wqy-microhei"

command -v dpkg-query >/dev/null 2>&1 || exit 0
python3 -c 'import ensurepip' 2>/dev/null || window="$window python3-venv"
list=$window
[ "$what" = tests ] && list="$window $tests"

missing=
for package in $list; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || dpkg-query -W -f='${Status}' "${package}t64" 2>/dev/null || true)
  case $status in *"install ok installed"*) ;; *) missing="$missing $package" ;; esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then sudo=
elif sudo -n true 2>/dev/null; then sudo="sudo -n"
else
  echo "These system packages are missing; the window may not open until they are installed:"
  echo "  sudo apt-get install --no-install-recommends$missing"
  exit 0
fi
echo "Installing system packages:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
{ $sudo apt-get update -qq && $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null; } ||
  echo "Could not install$missing; going on without."
