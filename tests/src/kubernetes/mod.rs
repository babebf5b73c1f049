// SPDX-License-Identifier: Apache-2.0
//! A whole Kubernetes cluster on one machine: the real API server, controllers and scheduler, a kubelet that runs pods
//! as processes, the DNS, and a load balancer for Services.

pub mod api;
pub mod balancer;
pub mod controllers;
pub mod dns;
pub mod envoy_gateway;
pub mod kubelet;
