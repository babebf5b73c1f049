#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# push.sh CRANE FOLDER REPOSITORY VERSION: pushes the images of FOLDER with their documents, and prints the names of
# the pushed images.
set -euo pipefail
crane=$1 folder=$2 repository=$3 version=$4

digest() { # LAYOUT
    sed 's/.*"digest":"\([^"]*\)".*/\1/' "$1/index.json"
}

for image in edge filter; do
    "$crane" push "$folder/$image" "$repository/$image:$version"
    for document in "$folder/$image"-*/; do
        "$crane" push "$document" "$repository/$image@$(digest "$document")" >/dev/null
    done
done
