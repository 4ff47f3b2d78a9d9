#!/bin/sh
# Put nvitop and gpustat into an environment of their own below build/witnesses: the tests let them read the same driver as we do.
# Not beside us: nvitop holds nvidia-ml-py back. Where they cannot be fetched the tests are skipped.
set -eu
cd "$(dirname "$0")/.."
[ -x build/witnesses/bin/nvitop ] && [ -x build/witnesses/bin/gpustat ] && exit 0
rm -rf build/witnesses
if ! "$1" -m venv build/witnesses ||
  ! build/witnesses/bin/python -m pip install --quiet --disable-pip-version-check 'nvitop>=1.6' 'gpustat>=1.1'; then
  rm -rf build/witnesses
  echo "Could not fetch nvitop and gpustat; the tests that compare with them are skipped."
fi
