// SPDX-License-Identifier: Apache-2.0
//! The module's entry point, which the SDK's macro exports.

use crate::root::Root;

proxy_wasm::main! {{
    proxy_wasm::set_root_context(|context| Box::new(Root::new(context)));
}}
