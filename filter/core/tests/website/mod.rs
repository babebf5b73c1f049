// SPDX-License-Identifier: Apache-2.0
//! A bucket as a web site, and redirects of any site.

mod bucket;
mod listing;
mod redirects;
