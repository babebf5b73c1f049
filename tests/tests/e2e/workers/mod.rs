// SPDX-License-Identifier: Apache-2.0
//! What Envoy's workers share, and what happens to the others when one of them dies or stands still.

mod dead_vm;
mod hosts;
mod slow_workers;
