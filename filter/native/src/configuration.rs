// SPDX-License-Identifier: Apache-2.0
//! The configuration of the filter in one place of a chain.

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_core::sites::Sites;

use crate::aid::Aid;

/// Name of the filter that is a worker's carrier ([`crate::carrier`]).
const CARRIER: &[u8] = b"worker";
/// Name of the filter that makes responses of slices ([`crate::slicer`]).
const SLICER: &[u8] = b"slicer";
/// Name of the filter that carries the slicer's requests ([`crate::slicer::carrier`]).
const SLICE_CARRIER: &[u8] = b"slice_carrier";
/// Names of the filters whose configuration has no policy.
const WITHOUT_POLICY: [&[u8]; 6] = [
    b"origin",
    b"readiness",
    b"control",
    CARRIER,
    SLICER,
    SLICE_CARRIER,
];

/// A configuration that Envoy has created.
#[derive(Debug)]
pub struct Configuration {
    /// The name of the filter, which is its role.
    pub role: Vec<u8>,
    /// The policies; for a carrier, the socket of its listener.
    pub text: Vec<u8>,
    gone: AtomicBool,
}

impl Configuration {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The text describes the fault of its policy.
    pub fn new(role: &[u8], text: Vec<u8>) -> Result<Self, String> {
        if !WITHOUT_POLICY.contains(&role) && Aid::named(role).is_none() {
            Sites::parse(&text).map_err(|error| format!("policy refused: {error}"))?;
        }
        Ok(Self {
            role: role.to_owned(),
            text,
            gone: AtomicBool::new(false),
        })
    }

    /// Whether it configures the workers' carriers.
    pub fn is_carrier(&self) -> bool {
        self.role == CARRIER
    }

    /// The small filter that it configures, if it does.
    pub fn aid(&self) -> Option<Aid> {
        Aid::named(&self.role)
    }

    /// Whether it configures the slicer.
    pub fn is_slicer(&self) -> bool {
        self.role == SLICER
    }

    /// Whether it configures the carriers of the slicer's requests.
    pub fn is_slice_carrier(&self) -> bool {
        self.role == SLICE_CARRIER
    }

    /// Whether its filter uses no worker of the roles.
    pub fn is_alone(&self) -> bool {
        self.is_slicer() || self.is_slice_carrier() || self.aid().is_some()
    }

    /// Whether its filter is in a chain behind the cache filter.
    pub fn is_upstream(&self) -> bool {
        self.role == b"origin"
    }

    /// Handles the end of the configuration: no stream of it is left, and none will begin.
    pub fn end(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// Whether Envoy has ended it.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}
