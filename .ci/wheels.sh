#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheels.sh REQUIREMENTS FOLDER [OPTION...]: installs pinned wheels into FOLDER with further options of pip. Each
# wheel is verified by its hash, and either all are installed or none.
set -euo pipefail
requirements=$1
folder=$2

part=$folder.part
rm -rf "$part" "$folder"
mkdir -p "$part"
trap 'rm -rf "$part" "$part.venv"' EXIT

python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then
    python3 -m venv "$part.venv"
    python=$part.venv/bin/python3
fi
echo "installing $(basename "$folder") from PyPI"
PIP_USER=0 PIP_ROOT_USER_ACTION=ignore "$python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps \
    --require-hashes --only-binary :all: --target "$part" -r "$requirements" "${@:3}"
mv "$part" "$folder"
