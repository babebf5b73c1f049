// SPDX-License-Identifier: Apache-2.0
//! Access: whether the client of a request may read the site.
//!
//! | what | where |
//! |---|---|
//! | the decision about a request | [`decision`] |
//! | the facts that a signature covers | [`grant`] |
//! | the keys of signatures | [`signing_key`], [`sealed_key`] |
//! | the users of the scheme Basic | [`users`] |
//! | the token in a request | [`token`] |
//! | all secrets of a site | [`secrets`] |
//! | the signatures in a request, and the request without them | [`credentials`], [`parameters`] |
//! | the links whose signatures were verified | [`verified_links`] |

mod checker_cluster;
pub mod credentials;
pub mod decision;
pub mod grant;
pub mod parameters;
pub mod sealed_key;
pub mod secrets;
pub mod signing_key;
pub mod token;
pub mod users;
pub mod verified_links;
