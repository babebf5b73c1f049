// SPDX-License-Identifier: Apache-2.0
//! Stand-ins for the filter with little logic, so that tests show the effect of the configuration alone.

use std::path::{Path, PathBuf};

/// A filter that lets every request pass unchecked, as a dead filter would if Envoy allowed it.
pub const DEAD: &str = r#"
(module
  (memory (export "memory") 1)
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024)))
"#;

/// A filter that approves every request.
pub const APPROVING: &str = r#"
(module
  (import "env" "proxy_replace_header_map_value" (func $replace (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "x-sluice-proof")
  (data (i32.const 30) "1")
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
    (drop (call $replace (i32.const 0) (i32.const 16) (i32.const 14) (i32.const 30) (i32.const 1)))
    (i32.const 0)))
"#;

/// A filter that approves every request, and wants each response compressed.
pub const COMPRESSING: &str = r#"
(module
  (import "env" "proxy_replace_header_map_value" (func $replace (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "x-sluice-proof")
  (data (i32.const 30) "1")
  (data (i32.const 32) "x-sluice-compress")
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
    (drop (call $replace (i32.const 0) (i32.const 16) (i32.const 14) (i32.const 30) (i32.const 1)))
    (drop (call $replace (i32.const 0) (i32.const 32) (i32.const 17) (i32.const 30) (i32.const 1)))
    (i32.const 0)))
"#;

/// A filter that lets requests pass in the listener's chain, and traps on each request in the cluster's chain.
pub const TRAPPING: &str = r#"
(module
  (memory (export "memory") 1)
  (global $calls (mut i32) (i32.const 0))
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (if (i32.eq (global.get $calls) (i32.const 2)) (then unreachable))
    (i32.const 0)))
"#;

/// A filter that replaces the path by the header `x-path`. Envoy refuses some paths of clients, but not of filters.
pub const REWRITING: &str = r#"
(module
  (import "env" "proxy_get_header_map_value" (func $get (param i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_replace_header_map_value" (func $replace (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "x-path")
  (data (i32.const 32) ":path")
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
    (if (i32.eqz (call $get (i32.const 0) (i32.const 16) (i32.const 6) (i32.const 64) (i32.const 68)))
      (then (drop (call $replace (i32.const 0) (i32.const 32) (i32.const 5)
        (i32.load (i32.const 64)) (i32.load (i32.const 68))))))
    (i32.const 0)))
"#;

/// Writes a module to a file in `folder`.
pub fn write(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("filter.wasm");
    std::fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
    path
}
