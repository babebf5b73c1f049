#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# store_words.sh: fails when the filter outside of filter/store uses words of Envoy's cache. The interface of that
# crate has the words of any cache: to look up, to lead, to follow, to fill.
set -euo pipefail
cd "$(dirname "$0")/../filter"

words='\b[a-z_]*(probe|unconfirmed|purpose|primary)[a-z_]*\b|(^|[^-])\brewrit|\bgap\b'
if grep -rnEi "$words" core/src roles/src host/src wasm/src native/src; then
    echo "the lines above have words of filter/store" >&2
    exit 1
fi
