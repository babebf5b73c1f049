// SPDX-License-Identifier: Apache-2.0
//! Brings entries of earlier runs back, each after a check that its file is whole.
//!
//! Answers this behaviour of Envoy: the v1 store serves every file that it finds in its folder, and crashes on a file
//! that is not whole (`control_bare_envoy_dies_of_a_file_that_is_cut_short`). So Envoy begins with an empty folder.
//! While it stores entries, the keeper writes the fingerprint of each into the manifest. At the next start the entries
//! stand aside, and an entry comes back if its file has the fingerprint in the manifest.
//!
//! When Envoy checks its files, that control test fails. Then delete this folder, `set_aside` and `unchecked_in` in
//! [`crate::cache::folder`], and `check`, `record` and all that is `unchecked` or `manifest` in
//! [`crate::cache::keeper`].

mod fingerprint;
mod manifest;
mod unchecked;

pub use fingerprint::Fingerprint;
pub use manifest::{Fingerprints, Manifest};
pub use unchecked::{Check, UncheckedFiles};
