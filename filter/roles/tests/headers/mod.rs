// SPDX-License-Identifier: Apache-2.0
//! Headers and bodies on their way through the roles.

mod bytes;
mod request;
mod request_body;
mod response;
