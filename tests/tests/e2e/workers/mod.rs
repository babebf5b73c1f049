// SPDX-License-Identifier: Apache-2.0
//! State that Envoy's workers share, and what the other workers do when one worker dies or stalls.

mod dead_vm;
mod hosts;
mod slow_workers;
