// SPDX-License-Identifier: Apache-2.0
//! Varnish with its defaults, see `peers/varnish.vcl`.

use crate::peers::conforming;
use crate::peers::recipe::Recipe;

/// Without a jail the process runs as the current user, so that it ends with the bench in any case.
#[rustfmt::skip]
pub const DEFAULTS: Recipe = Recipe {
    files: &[("varnish.vcl", include_str!("../../peers/varnish.vcl"))],
    arguments: &[
        "-F", "-j", "none", "-n", "${FOLDER}/run", "-f", "${FOLDER}/varnish.vcl", "-a", "${ADDRESS}", "-s",
        "malloc,256m", "-p", "feature=+http2",
    ],
    ..conforming::VARNISH
};
