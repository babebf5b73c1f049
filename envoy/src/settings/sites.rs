// SPDX-License-Identifier: Apache-2.0
//! The sites of the file that `SITES` names.

use std::time::SystemTime;

use super::environment::Environment;
use super::listeners::Clients;
use super::problem::SettingProblem;
use crate::origin::is_region;
use crate::sites::{Sites, Surroundings};

/// Settings that each site has in the file of sites, and their fields.
const OF_A_SITE: [(&str, &str); 7] = [
    ("ORIGIN", "origin"),
    ("ORIGIN_KEEPALIVE", "keepalive"),
    ("S3_ENDPOINT", "endpoint"),
    ("S3_ADDRESSING", "addressing"),
    ("POLICY", "policy"),
    ("TLS_CERT", "tls.certificate"),
    ("TLS_KEY", "tls.key"),
];

/// Reads the file of sites. `None`: none is set, or there is a problem.
pub fn read(env: &mut Environment<'_>, clients: Option<&Clients>) -> Option<Sites> {
    let file = env.set("SITES")?;
    for (name, field) in OF_A_SITE {
        if env.set(name).is_some() {
            let accepted = format!("must be unset beside SITES: a site has {field} for this");
            env.refuse(name, None, accepted);
        }
    }
    let region = env.parse("AWS_REGION", "a region such as us-east-1", |text| {
        is_region(text).then(|| text.to_owned())
    });
    let surroundings = Surroundings {
        lookup: env.lookup(),
        region: &region?,
        behind_proxy: clients.is_some_and(|clients| clients.trusted_hops > 0),
        now: SystemTime::now(),
    };
    match Sites::read(&file, surroundings) {
        Ok(sites) => Some(sites),
        Err(problems) => {
            let problems = problems.into_iter().map(SettingProblem::File);
            problems.for_each(|problem| env.report(problem));
            None
        }
    }
}
