#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files.sh MODULE FOLDER: copies the files of Istio's images and charts beside the binaries, from the modules that
# the go.mod in folder MODULE pins.
set -euo pipefail
rm -rf "$2.part"
mkdir -p "$2.part"
folder=$(cd "$2.part" && pwd)
cd "$1"

module() {
    go mod download "$1"
    go list -m -f '{{.Dir}}' "$1"
}

istio=$(module istio.io/istio)
charts=$istio/manifests/charts
install -m 644 -t "$folder" \
    "$istio/tools/packaging/common/envoy_bootstrap.json" \
    "$charts/base/files/crd-all.gen.yaml" \
    "$charts/istio-control/istio-discovery/values.yaml" \
    "$charts/istio-control/istio-discovery/files/gateway-injection-template.yaml" \
    "$charts/istio-control/istio-discovery/files/injection-template.yaml"
gateway_api=$(module sigs.k8s.io/gateway-api)
for definition in "$gateway_api"/config/crd/standard/gateway.networking.k8s.io_*.yaml; do
    echo '---'
    cat "$definition"
done >"$folder/gateway-api.yaml"
mv "$folder" "${folder%.part}"
