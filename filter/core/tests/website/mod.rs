// SPDX-License-Identifier: Apache-2.0
//! A bucket as a web site.

mod bucket;
