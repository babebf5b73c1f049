// SPDX-License-Identifier: Apache-2.0
//! The access rules of the one site in front of `SLUICE_ORIGIN`.

use super::environment::Environment;
use super::problem::SettingProblem;
use crate::demo::Demo;
use crate::origin::Origin;
use crate::sites::SiteAccess;

/// Reads the file of `SLUICE_ACCESS`, for a site with this origin or for the demo. `None`: it is not set, or there is
/// a problem.
pub fn read(env: &mut Environment<'_>, origin: Option<&Origin>) -> Option<SiteAccess> {
    let file = env.set("SLUICE_ACCESS")?;
    let demo = Demo::example_origin();
    let read = SiteAccess::read_file(&file, origin.unwrap_or(&demo), env.lookup());
    let report = |problems: Vec<_>| {
        let problems = problems.into_iter().map(SettingProblem::File);
        problems.for_each(|problem| env.report(problem));
    };
    read.map_err(report).ok()
}
