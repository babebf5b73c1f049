// SPDX-License-Identifier: Apache-2.0
//! An origin with very many objects.

use sluice_tests::origin::{Origin, Reply};

/// Starts an origin with objects of this size under all paths, fresh for a day. The origin does not record requests.
pub async fn of(bytes: usize) -> Origin {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(bytes).max_age(86_400));
    origin.forget_requests();
    origin
}
