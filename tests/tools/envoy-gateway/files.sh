#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files.sh FILE: writes the definitions of Envoy Gateway's resources and of the Gateway API, from the modules that the
# go.mod beside it pins, to FILE.
set -euo pipefail
mkdir -p "$(dirname "$1")"
file=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")"

module() {
    GOWORK=off go mod download "$1"
    GOWORK=off go list -m -f '{{.Dir}}' "$1"
}

envoy_gateway=$(module github.com/envoyproxy/gateway)
gateway_api=$(module sigs.k8s.io/gateway-api)
for definition in "$gateway_api"/config/crd/standard/gateway.networking.k8s.io_*.yaml \
    "$envoy_gateway"/charts/gateway-crds-helm/templates/generated/*.yaml; do
    echo '---'
    # Those of Envoy Gateway are templates of a chart.
    sed "/^{{/d" "$definition"
done >"$file.part"
mv "$file.part" "$file"
