// SPDX-License-Identifier: Apache-2.0
//! The sites of the file that `SLUICE_SITES` names.

use std::time::SystemTime;

use super::environment::Environment;
use super::listeners::Clients;
use super::origin::{read_region, read_usual_endpoint};
use super::problem::SettingProblem;
use super::purge::PurgeListener;
use crate::sites::{Sites, Surroundings};

/// Settings that each site has in the file of sites, and their fields.
const OF_A_SITE: [(&str, &str); 13] = [
    ("SLUICE_ORIGIN", "origin"),
    ("SLUICE_ORIGIN_KEEPALIVE", "keepalive"),
    ("SLUICE_FAILOVER_ORIGIN", "failover"),
    ("SLUICE_HEDGE_AFTER", "hedge_after"),
    ("SLUICE_ORIGIN_HEALTH_CHECK", "health_check"),
    ("SLUICE_S3_ENDPOINT", "endpoint"),
    ("SLUICE_S3_ADDRESSING", "addressing"),
    ("SLUICE_POLICY", "policy"),
    ("SLUICE_ACCESS", "access"),
    ("SLUICE_TLS_CERT", "tls.certificate"),
    ("SLUICE_TLS_KEY", "tls.key"),
    ("SLUICE_REDIRECT_TO_HTTPS", "redirect_to_https"),
    ("SLUICE_HSTS", "hsts"),
];

/// Reads the file of sites. `None`: none is set, or there is a problem.
pub fn read(
    env: &mut Environment<'_>,
    clients: Option<&Clients>,
    purge: Option<&PurgeListener>,
) -> Option<Sites> {
    let file = env.set("SLUICE_SITES")?;
    for (name, field) in OF_A_SITE {
        if env.set(name).is_some() {
            let accepted =
                format!("must be unset beside SLUICE_SITES: a site has {field} for this");
            env.refuse(name, None, accepted);
        }
    }
    let region = read_region(env);
    let endpoint = read_usual_endpoint(env);
    let surroundings = Surroundings {
        lookup: env.lookup(),
        region: &region?,
        endpoint: endpoint.as_ref(),
        purge_token: purge.and_then(|purge| purge.token),
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
