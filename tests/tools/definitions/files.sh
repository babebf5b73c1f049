#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files.sh FILE: writes the definitions of custom resources, from the modules that the go.mod beside it pins, to FILE.
set -euo pipefail
mkdir -p "$(dirname "$1")"
file=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")"

module() {
    GOWORK=off go mod download "$1"
    GOWORK=off go list -m -f '{{.Dir}}' "$1"
}

operator=$(module github.com/prometheus-operator/prometheus-operator)
gateway_api=$(module sigs.k8s.io/gateway-api)
for definition in "$operator"/example/prometheus-operator-crd/monitoring.coreos.com_{podmonitors,prometheusrules}.yaml \
    "$gateway_api"/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml; do
    echo '---'
    cat "$definition"
done >"$file.part"
mv "$file.part" "$file"
