// SPDX-License-Identifier: Apache-2.0
//! Restores entries of earlier runs, each after a check that its file is whole.
//!
//! Works around a behaviour of Envoy: the v1 store serves every file that it finds in its folder, and crashes on a
//! file that is not whole (`control_bare_envoy_dies_of_a_file_that_is_cut_short`). So Envoy starts with an empty
//! folder. While Envoy stores entries, the keeper writes the fingerprint of each into the manifest. At the next
//! start the entries are set aside, and an entry is restored if its file has the fingerprint in the manifest.
//!
//! If Envoy checks its files, that control test fails. Then delete this folder, `set_aside` and `unchecked_in` in
//! [`crate::cache::folder`], and `check`, `record` and everything named `unchecked` or `manifest` in
//! [`crate::cache::keeper`].

mod fingerprint;
mod manifest;
mod unchecked;

pub use fingerprint::Fingerprint;
pub use manifest::{Fingerprints, Manifest};
pub use unchecked::{Check, UncheckedFiles};
