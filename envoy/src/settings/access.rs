// SPDX-License-Identifier: Apache-2.0
//! The access rules of the one site in front of `SLUICE_ORIGIN`.

use super::environment::Environment;
use super::problem::SettingProblem;
use crate::origin::{BucketName, Origin};
use crate::sites::SiteAccess;

/// Reads the file of `SLUICE_ACCESS`, for a site with this origin or for the demo. `None`: it is not set, or there is
/// a problem.
pub fn read(env: &mut Environment<'_>, origin: Option<&Origin>) -> Option<SiteAccess> {
    let file = env.set("SLUICE_ACCESS")?;
    // The demo has a bucket, too.
    let bucket = BucketName::parse("demo").map(|bucket| bucket.placed(None, "us-east-1", None));
    let origin = origin.cloned().or(bucket.map(Origin::Bucket))?;
    let read = SiteAccess::read_file(&file, &origin, env.lookup());
    let report = |problems: Vec<_>| {
        let problems = problems.into_iter().map(SettingProblem::File);
        problems.for_each(|problem| env.report(problem));
    };
    read.map_err(report).ok()
}
