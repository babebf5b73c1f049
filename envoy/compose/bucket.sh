#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bucket.sh: makes the demo's bucket and fills it, and lets READER read it and do nothing else. It may run again.
set -eu

mc mb --ignore-existing minio/demo
mc mirror --overwrite /demo minio/demo
# The page asks for two objects whose names are awkward for files.
mc cp /demo/text/plus.txt 'minio/demo/text/a+b & c.txt'
mc cp /demo/text/umlaut.txt 'minio/demo/text/größe.txt'

mc admin user add minio "$READER" "$READER_PASSWORD"
mc admin policy create minio reader /setup/reader.json
# A policy that is attached already is an error.
mc admin user info minio "$READER" | grep -q '^PolicyName: reader' ||
    mc admin policy attach minio reader --user "$READER"
