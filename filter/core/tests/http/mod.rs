// SPDX-License-Identifier: Apache-2.0
//! The headers of requests and responses.

mod cors;
mod request;
