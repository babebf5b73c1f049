#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bucket.sh: creates and fills the demo's bucket, and allows READER only to read it. It may run more than once.
set -eu

mc mb --ignore-existing minio/demo
mc mirror --overwrite /demo minio/demo
# The page requests two objects whose names are awkward for files.
mc cp /demo/text/plus.txt 'minio/demo/text/a+b & c.txt'
mc cp /demo/text/umlaut.txt 'minio/demo/text/größe.txt'
# A large object, which the edge stores in slices: each line is its own offset.
seq -f %63.0f 0 64 $((24 * 1024 * 1024 - 64)) | mc pipe --attr 'Content-Type=application/octet-stream' minio/demo/data/offsets.bin

mc admin user add minio "$READER" "$READER_PASSWORD"
mc admin policy create minio reader /setup/reader.json
# Attaching a policy twice is an error.
mc admin user info minio "$READER" | grep -q '^PolicyName: reader' ||
    mc admin policy attach minio reader --user "$READER"
