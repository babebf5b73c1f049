// SPDX-License-Identifier: Apache-2.0
//! Starting, stopping and watching the edge: settings, TLS, health, logs and metrics.

mod access_log;
mod drain;
mod health_check;
mod host_calls;
mod http3;
mod ipv6;
mod memory_bounds;
mod observability;
mod readiness;
mod reload;
mod secrets;
mod settings_errors;
mod systemd;
mod tls;
mod upgrade;
