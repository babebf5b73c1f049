// SPDX-License-Identifier: Apache-2.0
//! The control groups of this process: the limits of its container, its pod or its systemd unit.

use std::fs;
use std::path::{Component, Path};

/// The folder in which the kernel shows control groups.
pub const MOUNTED: &str = "/sys/fs/cgroup";

/// The least memory limit of this process's control groups and their parents, in bytes. `groups` is the text of
/// `/proc/self/cgroup`, `mounted` is [`MOUNTED`]. `None`: no group has a limit.
pub fn memory_limit(groups: &str, mounted: &Path) -> Option<u64> {
    let unified = least(mounted, "memory.max", path_of(groups, ""));
    let folder = mounted.join("memory");
    let memory = least(&folder, "memory.limit_in_bytes", path_of(groups, "memory"));
    [unified, memory].into_iter().flatten().min()
}

/// The path of the group of this controller; the unified hierarchy has an empty name. A line is
/// `4:cpu,memory:/a/b`.
fn path_of<'a>(groups: &'a str, controller: &str) -> &'a Path {
    let path = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let has = controllers.split(',').any(|name| name == controller);
        has.then_some(path)
    });
    Path::new(path.unwrap_or_default().trim_start_matches('/'))
}

/// The least number in the files of this name, from the group at `path` up to the top. A container sees its own
/// group as the top, but the path may be the host's, so missing folders are skipped.
fn least(top: &Path, file: &str, path: &Path) -> Option<u64> {
    let is_below = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let path = if is_below { path } else { Path::new("") };
    let groups = path.ancestors().map(|group| top.join(group).join(file));
    let limits = groups.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    limits.min()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A folder with these files in place of the kernel's.
    fn mounted(files: &[(&str, &str)]) -> TempDir {
        let folder = TempDir::new().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn limit(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        memory_limit(groups, mounted(files).path())
    }

    #[test]
    fn a_container_has_the_limit_of_its_own_top() {
        let files = [("memory.max", "1073741824\n")];
        assert_eq!(limit("0::/\n", &files), Some(1 << 30));
        // The path is the host's.
        assert_eq!(limit("0::/kubepods/pod1/c1\n", &files), Some(1 << 30));
        assert_eq!(limit("0::/../other\n", &files), Some(1 << 30));
        assert_eq!(limit("", &files), Some(1 << 30));
        assert_eq!(limit("0::/\n", &[("memory.max", "max\n")]), None);
        assert_eq!(limit("0::/\n", &[]), None);
    }

    #[test]
    fn a_unit_has_the_least_limit_on_the_way_to_the_top() {
        let files = [
            ("memory.max", "max\n"),
            ("system.slice/memory.max", "536870912\n"),
            ("system.slice/sluice.service/memory.max", "1073741824\n"),
            ("system.slice/other.service/memory.max", "1024\n"),
        ];
        let groups = "0::/system.slice/sluice.service\n";
        assert_eq!(limit(groups, &files), Some(512 << 20));
    }

    #[test]
    fn the_first_version_of_control_groups_has_a_hierarchy_for_memory() {
        let groups = "3:cpuset:/a\n2:cpu,memory:/docker/c1\n1:name=systemd:/a\n0::/a\n";
        let files = [
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/docker/c1/memory.limit_in_bytes", "268435456\n"),
            ("memory/a/memory.limit_in_bytes", "1024\n"),
        ];
        assert_eq!(limit(groups, &files), Some(256 << 20));
    }
}
