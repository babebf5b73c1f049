// SPDX-License-Identifier: Apache-2.0
//! The module's entry point, which the SDK's macro exports.

use crate::contexts::EnvoyRoot;

proxy_wasm::main! {{
    proxy_wasm::set_root_context(|context| Box::new(EnvoyRoot::new(context)));
}}
