// SPDX-License-Identifier: Apache-2.0
//! The state that Envoy's workers share, and the effect on other workers when one of them dies or stops.

mod dead_vm;
mod hosts;
mod slow_workers;
