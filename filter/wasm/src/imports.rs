// SPDX-License-Identifier: Apache-2.0
//! The functions that Envoy exports to a module: proxy-wasm's ABI 0.2.1, and four functions of WASI.
#![allow(unsafe_code)]

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    pub fn proxy_log(level: u32, message: *const u8, size: usize) -> u32;
    pub fn proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, size: *mut usize) -> u32;
    pub fn proxy_replace_header_map_value(
        map: u32,
        name: *const u8,
        name_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    pub fn proxy_add_header_map_value(
        map: u32,
        name: *const u8,
        name_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    pub fn proxy_remove_header_map_value(map: u32, name: *const u8, name_size: usize) -> u32;
    pub fn proxy_set_property(
        path: *const u8,
        path_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    pub fn proxy_get_property(
        path: *const u8,
        path_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    pub fn proxy_get_buffer_bytes(
        buffer: u32,
        start: usize,
        max_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    pub fn proxy_set_buffer_bytes(
        buffer: u32,
        start: usize,
        size: usize,
        data: *const u8,
        data_size: usize,
    ) -> u32;
    pub fn proxy_get_shared_data(
        key: *const u8,
        key_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
        token: *mut u32,
    ) -> u32;
    pub fn proxy_set_shared_data(
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
        token: u32,
    ) -> u32;
    pub fn proxy_register_shared_queue(name: *const u8, name_size: usize, queue: *mut u32) -> u32;
    pub fn proxy_resolve_shared_queue(
        vm_id: *const u8,
        vm_id_size: usize,
        name: *const u8,
        name_size: usize,
        queue: *mut u32,
    ) -> u32;
    pub fn proxy_enqueue_shared_queue(queue: u32, value: *const u8, value_size: usize) -> u32;
    pub fn proxy_dequeue_shared_queue(queue: u32, data: *mut *mut u8, size: *mut usize) -> u32;
    pub fn proxy_continue_stream(half: u32) -> u32;
    pub fn proxy_close_stream(half: u32) -> u32;
    pub fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
    pub fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    pub fn proxy_set_effective_context(context: u32) -> u32;
    pub fn proxy_define_metric(
        kind: u32,
        name: *const u8,
        name_size: usize,
        metric: *mut u32,
    ) -> u32;
    pub fn proxy_increment_metric(metric: u32, offset: i64) -> u32;
    pub fn proxy_record_metric(metric: u32, value: u64) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    pub fn random_get(buffer: *mut u8, size: usize) -> u32;
    pub fn environ_sizes_get(count: *mut usize, size: *mut usize) -> u32;
    pub fn environ_get(variables: *mut *mut u8, buffer: *mut u8) -> u32;
    pub fn clock_time_get(clock: u32, precision: u64, time: *mut u64) -> u32;
}
