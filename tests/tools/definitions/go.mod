// The definitions of the custom resources that the chart makes, for its tests: verified by go.sum.
module sluice.invalid/definitions

go 1.25.0

require (
	github.com/prometheus-operator/prometheus-operator v0.85.0
	sigs.k8s.io/gateway-api v1.6.0
)
