// SPDX-License-Identifier: Apache-2.0
//! Features that make a bucket a web site: documents, error pages, media types, CORS, compression.

mod compression;
mod content_types;
mod cors;
mod demo;
mod documents;
mod errors;
mod listing;
mod maintenance;
mod ready_made_policies;
