// SPDX-License-Identifier: Apache-2.0
//! The volumes of a pod, as folders of this machine.

use crate::kubernetes::api::Api;
use crate::machine::kubelet::mount_for;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time between two looks at an object that does not exist yet.
const PERIOD: Duration = Duration::from_millis(100);

/// The files of a ConfigMap or of a Secret.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// A volume with its folder.
struct Volume {
    name: String,
    folder: PathBuf,
    /// The ConfigMap or the Secret, and its files in the folder.
    source: Option<(Source, Files)>,
}

/// A ConfigMap or a Secret whose files a volume has.
struct Source {
    /// Its path in the API.
    path: String,
    /// The keys that the volume has, and their files. None: every key is a file.
    items: BTreeMap<String, String>,
}

/// The volumes of a pod.
pub(super) struct Volumes(Vec<Volume>);

impl Volumes {
    /// Makes the volumes of a pod below `place`, as soon as the objects that they name exist.
    pub(super) async fn make(api: Api, pod: &Value, place: &Path) -> Self {
        let mut all = Vec::new();
        for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
            let name = volume["name"].as_str().unwrap();
            all.push(make(api, pod, volume, place.join(name)).await);
        }
        Self(all)
    }

    /// Brings the files of changed ConfigMaps and Secrets up to date.
    pub(super) async fn update(&mut self, api: Api) {
        for volume in &mut self.0 {
            if let Some((source, files)) = &mut volume.source
                && let Some(current) = files_of(api, &source.path).await
                && let current = source.select(current)
                && current != *files
            {
                replace(&volume.folder, &current);
                *files = current;
            }
        }
    }

    /// The folder of a volume, and whether containers must not write to it.
    pub(super) fn folder(&self, name: &str) -> (&Path, bool) {
        let mut all = self.0.iter();
        let volume = all.find(|volume| volume.name == name).expect("a volume");
        (&volume.folder, volume.source.is_some())
    }
}

async fn make(api: Api, pod: &Value, volume: &Value, folder: PathBuf) -> Volume {
    let name = volume["name"].as_str().unwrap().to_owned();
    let configuration = volume["configMap"]["name"].as_str();
    let secret = volume["secret"]["secretName"].as_str();
    let path = configuration.map(|name| path_in(pod, "configmaps", name));
    let path = path.or_else(|| secret.map(|name| path_in(pod, "secrets", name)));
    let (folder, source) = if let Some(path) = path {
        fs::create_dir(&folder).unwrap();
        let items = items(&volume["secret"]["items"]);
        let source = Source { path, items };
        let files = source.select(wait_for_files(api, &source.path).await);
        replace(&folder, &files);
        (folder, Some((source, files)))
    } else if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
        let folder = claimed(api, &path_in(pod, "persistentvolumeclaims", claim)).await;
        let policy = pod["spec"]["securityContext"]["fsGroupChangePolicy"].as_str();
        give(&folder, pod, policy);
        (folder, None)
    } else {
        let is_empty = volume["emptyDir"].is_object();
        assert!(is_empty, "this kubelet has no volumes such as {volume}");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        give(&folder, pod, None);
        (folder, None)
    };
    Volume {
        name,
        folder,
        source,
    }
}

impl Source {
    /// The files of the volume, of these files by their keys.
    fn select(&self, mut files: Files) -> Files {
        if self.items.is_empty() {
            return files;
        }
        let items = self.items.iter();
        let items = items.map(|(key, file)| {
            let content = files.remove(key).expect("a key of the Secret");
            (file.clone(), content)
        });
        items.collect()
    }
}

/// The keys of a list of items, and their files.
fn items(list: &Value) -> BTreeMap<String, String> {
    let items = list.as_array().into_iter().flatten();
    let items = items.map(|item| {
        let field = |name: &str| item[name].as_str().unwrap().to_owned();
        (field("key"), field("path"))
    });
    items.collect()
}

/// The path in the API of an object of the pod's namespace.
fn path_in(pod: &Value, kind: &str, name: &str) -> String {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap();
    format!("/api/v1/namespaces/{namespace}/{kind}/{name}")
}

/// The folder of the volume that is bound to the claim at this path of the API.
async fn claimed(api: Api, path: &str) -> PathBuf {
    let claim = api.get(path).await.expect("a claim");
    let volume = claim["spec"]["volumeName"].as_str().unwrap();
    let path = format!("/api/v1/persistentvolumes/{volume}");
    let volume = api.get(&path).await.expect("a volume");
    volume["spec"]["local"]["path"].as_str().unwrap().into()
}

/// Gives the files of a volume to the `fsGroup` of the pod.
fn give(folder: &Path, pod: &Value, policy: Option<&str>) {
    if let Some(group) = pod["spec"]["securityContext"]["fsGroup"].as_u64() {
        mount_for(folder, u32::try_from(group).unwrap(), policy);
    }
}

/// The files of the ConfigMap or of the Secret at this path of the API, as soon as it exists.
pub(super) async fn wait_for_files(api: Api, path: &str) -> Files {
    loop {
        match files_of(api, path).await {
            Some(files) => return files,
            None => tokio::time::sleep(PERIOD).await,
        }
    }
}

/// The files of the ConfigMap or of the Secret at this path of the API.
async fn files_of(api: Api, path: &str) -> Option<Files> {
    let object = api.get(path).await?;
    let files = object["data"].as_object().into_iter().flatten();
    let files = files.map(|(name, text)| {
        let text = text.as_str().unwrap();
        let content = match path.contains("/secrets/") {
            true => BASE64_STANDARD.decode(text).unwrap(),
            false => text.as_bytes().to_vec(),
        };
        (name.clone(), content)
    });
    Some(files.collect())
}

/// Replaces all files of a volume at once. Each is a link through `..data`, which is a link to the folder of the
/// current files (`pkg/volume/util/atomic_writer.go`).
fn replace(volume: &Path, files: &Files) {
    let link = volume.join("..data");
    let former = fs::read_link(&link).ok();
    let number = former.as_ref().map_or(0, |name| {
        let name = name.to_str().unwrap().trim_start_matches('.');
        name.parse::<u32>().unwrap() + 1
    });
    let current = format!("..{number}");
    fs::create_dir(volume.join(&current)).unwrap();
    for (name, content) in files {
        fs::write(volume.join(&current).join(name), content).unwrap();
    }
    let new = volume.join("..data_tmp");
    symlink(&current, &new).unwrap();
    fs::rename(new, &link).unwrap();
    for name in files.keys().filter(|name| !volume.join(name).is_symlink()) {
        symlink(Path::new("..data").join(name), volume.join(name)).unwrap();
    }
    for entry in fs::read_dir(volume).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with("..") && !files.contains_key(&name) {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    if let Some(former) = former {
        fs::remove_dir_all(volume.join(former)).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_behind_one_link() {
        let folder = tempfile::TempDir::new().unwrap();
        let files = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
            pairs.collect::<Files>()
        };
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
            let mut names: Vec<_> = entries
                .map(|entry| entry.file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        replace(folder.path(), &files(&[("a", "1"), ("b", "1")]));
        assert_eq!(names(), ["..0", "..data", "a", "b"]);
        replace(folder.path(), &files(&[("a", "2"), ("c", "2")]));
        assert_eq!(names(), ["..1", "..data", "a", "c"]);
        assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "2");
        assert_eq!(
            fs::read_link(folder.path().join("a")).unwrap(),
            Path::new("..data/a")
        );
    }
}
