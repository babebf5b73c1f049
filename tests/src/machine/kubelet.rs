// SPDX-License-Identifier: Apache-2.0
//! Changes that Kubernetes' kubelet makes to the files of a volume at each mount for a pod with `fsGroup`
//! (`pkg/volume/volume_linux.go`).

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::Path;

/// The group of the pod's volumes: the group of this process, because a process without root's rights may set only
/// that.
fn fs_group() -> u32 {
    fs::metadata("/proc/self").unwrap().gid()
}

/// Mounts the volume at `root`, as for a pod with this `fsGroupChangePolicy` and the group of this process.
///
/// # Panics
/// When a file cannot be changed, or the policy does not exist.
pub fn mount(root: &Path, policy: Option<&str>) {
    mount_for(root, fs_group(), policy);
}

/// Mounts the volume at `root`, as for a pod with this `fsGroup` and this `fsGroupChangePolicy`.
///
/// # Panics
/// When a file cannot be changed, or the policy does not exist.
pub fn mount_for(root: &Path, group: u32, policy: Option<&str>) {
    let skips = match policy {
        None | Some("Always") => false,
        Some("OnRootMismatch") => matches(&fs::metadata(root).unwrap(), group),
        Some(other) => panic!("{other}: no fsGroupChangePolicy"),
    };
    if !skips {
        change(root, group);
    }
}

/// Whether the volume's root already has the right group and mode.
fn matches(root: &Metadata, group: u32) -> bool {
    const WANTED: u32 = 0o2770;
    root.gid() == group && root.mode() & WANTED == WANTED
}

fn change(path: &Path, group: u32) {
    let about = fs::symlink_metadata(path).unwrap();
    lchown(path, None, Some(group)).unwrap();
    if about.is_symlink() {
        return;
    }
    let wanted = if about.is_dir() { 0o2770 } else { 0o660 };
    let mode = (about.mode() & 0o7777) | wanted;
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    if about.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            change(&entry.unwrap().path(), group);
        }
    }
}
