// SPDX-License-Identifier: Apache-2.0
//! The policies that `POLICY` can name: those that come with the edge, or a file.

use std::path::PathBuf;

use super::environment::Environment;

/// A policy that comes with the edge.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadyMadePolicy {
    /// The name that `POLICY` takes.
    pub name: &'static str,
    /// The document, in YAML.
    pub text: &'static str,
}

macro_rules! ready_made {
    ($name:literal) => {
        ReadyMadePolicy {
            name: $name,
            text: include_str!(concat!("../../policies/", $name, ".yaml")),
        }
    };
}

/// The policy for a bucket, unless the user chooses another.
pub static BUCKET: ReadyMadePolicy = ready_made!("bucket");
/// The policy for an HTTP origin, unless the user chooses another.
pub static HTTP: ReadyMadePolicy = ready_made!("http");
static SPA: ReadyMadePolicy = ready_made!("spa");
static DOWNLOADS: ReadyMadePolicy = ready_made!("downloads");
static VERSIONED_ASSETS: ReadyMadePolicy = ready_made!("versioned-assets");

/// All policies that come with the edge.
pub static READY_MADE: [&ReadyMadePolicy; 5] =
    [&BUCKET, &HTTP, &SPA, &DOWNLOADS, &VERSIONED_ASSETS];

/// The policy that a user has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChoice {
    /// One that comes with the edge.
    ReadyMade(&'static ReadyMadePolicy),
    /// A file.
    File(PathBuf),
}

impl PolicyChoice {
    /// Reads `POLICY`: the name of a policy that comes with the edge, or else a file.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let text = env.set("POLICY")?;
        match READY_MADE.into_iter().find(|policy| policy.name == text) {
            Some(policy) => Some(Self::ReadyMade(policy)),
            None => env.file("POLICY").map(Self::File),
        }
    }
}
