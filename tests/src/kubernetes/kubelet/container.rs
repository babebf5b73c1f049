// SPDX-License-Identifier: Apache-2.0
//! The command that runs the container of a pod: its variables, its mounts and its user.

use super::volumes::{Volumes, wait_for_files};
use super::{Host, name_of};
use crate::image::container::words;
use crate::kubernetes::dns;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The source of a mount, its target, and whether it is read-only.
type Mount = (PathBuf, String, bool);

/// Enters a separate mount namespace, which needs root: `ROOT READ-ONLY USER GROUPS` and, for each mount,
/// `SOURCE TARGET READ-ONLY`, up to `--`.
const ENTER: &str = r#"
set -eu
root=$1 is_read_only=$2 user=$3 groups=$4
shift 4
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
    mount --bind "$1" "$root$2"
    [ "$3" = false ] || mount -o remount,bind,ro "$root$2"
    shift 3
done
shift
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
[ "$is_read_only" = false ] || mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" --groups="$groups" "$root" "$@"
"#;

/// Makes the command of a pod's container. `place` is the folder of the pod.
pub(super) async fn command(
    host: &Host,
    pod: &Value,
    address: IpAddr,
    volumes: &Volumes,
    place: &Path,
) -> Command {
    let container = &pod["spec"]["containers"][0];
    let image = &host.image;
    let mut mounts = write_names(pod, address, place).to_vec();
    for mount in container["volumeMounts"].as_array().into_iter().flatten() {
        let (folder, is_read_only) = volumes.folder(mount["name"].as_str().unwrap());
        let is_read_only = is_read_only || mount["readOnly"] == true;
        let target = mount["mountPath"].as_str().unwrap().to_owned();
        mounts.push((folder.to_owned(), target, is_read_only));
    }
    make_targets(image.root(), &mounts);
    let security = &pod["spec"]["securityContext"];
    let group = security["runAsGroup"].as_u64().unwrap_or_default();
    let user = format!("{}:{group}", security["runAsUser"]);
    let group = security["fsGroup"].as_u64().map(|group| group.to_string());
    let is_read_only = container["securityContext"]["readOnlyRootFilesystem"] == true;
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private"])
        .args(["sh", "-c", ENTER, "sh"])
        .arg(image.root())
        .args([&is_read_only.to_string(), &user, &group.unwrap_or_default()]);
    for (source, target, is_read_only) in &mounts {
        command
            .arg(source)
            .args([target, &is_read_only.to_string()]);
    }
    command.arg("--");
    command
        .args(words(&image.config()["Entrypoint"]))
        .args(words(&container["args"]))
        .env_clear()
        .envs(variables(host, pod, address).await);
    command
}

/// Makes the folders and the files of an image over which volumes are mounted, as an engine does.
fn make_targets(root: &Path, mounts: &[Mount]) {
    for (source, target, _) in mounts {
        let target = root.join(target.trim_start_matches('/'));
        if source.is_dir() {
            std::fs::create_dir_all(target).unwrap();
        } else if !target.exists() {
            std::fs::write(target, "").unwrap();
        }
    }
}

/// The variables of a container: those of its image, of `envFrom` and of `env`.
async fn variables(host: &Host, pod: &Value, address: IpAddr) -> BTreeMap<String, String> {
    let container = &pod["spec"]["containers"][0];
    let mut variables = host.image.variables();
    for source in container["envFrom"].as_array().into_iter().flatten() {
        variables.extend(secret(host, pod, &source["secretRef"]["name"]).await);
    }
    for variable in container["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap().to_owned();
        let reference = &variable["valueFrom"]["secretKeyRef"];
        let value = match reference["key"].as_str() {
            Some(key) => secret(host, pod, &reference["name"]).await[key].clone(),
            // The API server leaves out an empty value.
            None => variable["value"].as_str().unwrap_or_default().to_owned(),
        };
        variables.insert(name, value);
    }
    // All addresses of a pod's network are one address here.
    for (name, value) in &mut variables {
        let is_bind = name.ends_with("_BIND");
        if is_bind
            && value
                .parse()
                .is_ok_and(|value: IpAddr| value.is_unspecified())
        {
            *value = address.to_string();
        }
    }
    variables
}

/// The values of a Secret, as soon as it exists.
async fn secret(host: &Host, pod: &Value, name: &Value) -> BTreeMap<String, String> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap();
    let path = format!(
        "/api/v1/namespaces/{namespace}/secrets/{}",
        name.as_str().unwrap()
    );
    let values = wait_for_files(host.api, &path).await.into_iter();
    values
        .map(|(key, value)| (key, String::from_utf8(value).unwrap()))
        .collect()
}

/// Writes the files by which a container finds names: its own one, and the DNS of the cluster for the others.
fn write_names(pod: &Value, address: IpAddr, place: &Path) -> [Mount; 2] {
    let [namespace, name] = name_of(pod);
    let domain = dns::DOMAIN;
    let whole = pod["spec"]["subdomain"].as_str();
    let whole = whole.map(|service| format!("{name}.{service}.{namespace}.svc.{domain}"));
    let files = [
        (
            "hosts",
            format!(
                "127.0.0.1 localhost\n{address} {} {name}\n",
                whole.unwrap_or_default()
            ),
        ),
        (
            "resolv.conf",
            format!(
                "nameserver {}\nsearch {namespace}.svc.{domain} svc.{domain} {domain}\noptions ndots:5\n",
                dns::ADDRESS
            ),
        ),
    ];
    files.map(|(file, text)| {
        let source = place.join(format!("..{file}"));
        std::fs::write(&source, text).unwrap();
        (source, format!("/etc/{file}"), true)
    })
}
