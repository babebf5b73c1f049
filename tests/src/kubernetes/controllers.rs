// SPDX-License-Identifier: Apache-2.0
//! The controllers and the scheduler of a cluster.

use crate::machine::process::Process;
use crate::mesh::cluster::Cluster;

/// The controllers that run. The others act on objects that the tests do not have, or need a cloud.
const CONTROLLERS: [&str; 11] = [
    "cronjob-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "replicaset-controller",
    "statefulset-controller",
];

/// Starts the controllers and the scheduler, which end when they are dropped.
///
/// # Panics
/// When they cannot be started.
#[must_use]
pub fn start(cluster: &Cluster) -> [Process; 2] {
    let alone = ["--leader-elect=false", "--secure-port=0"];
    let controllers = format!("--controllers={}", CONTROLLERS.join(","));
    // The kubelet of processes reports its nodes once.
    let of_controllers = [controllers.as_str(), "--node-monitor-grace-period=24h"];
    [
        cluster.start_beside(
            "kube-controller-manager",
            &[&alone[..], &of_controllers].concat(),
        ),
        cluster.start_beside("kube-scheduler", &alone),
    ]
}
