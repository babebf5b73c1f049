// SPDX-License-Identifier: Apache-2.0
//! The smallest filter that answers requests: the lower limit of the cost of any such filter, for `make instructions`
//! and `make variants`. It has one callback, or the callbacks of a filter that looks at responses.
//!
//!     rustc --edition 2024 --target wasm32-unknown-unknown --crate-type cdylib -O -C panic=abort \
//!         [--cfg callbacks] -o floor.wasm bench/floor.rs
#![no_std]
#![no_main]
#![allow(unsafe_code, missing_docs)]

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
}

static BODY: [u8; 10_000] = [0; 10_000];
/// Headers of a hot hit, in the ABI's serialisation: a count, pairs of sizes, names and values each with a NUL.
static HEADERS: &[u8] = b"\x08\0\0\0\
    \x0c\0\0\0\x0a\0\0\0\x06\0\0\0\x0c\0\0\0\x04\0\0\0\x1d\0\0\0\x0d\0\0\0\x05\0\0\0\x0d\0\0\0\x0c\0\
    \0\0\x04\0\0\0\x03\0\0\0\x03\0\0\0\x01\0\0\0\x0c\0\0\0\x21\0\0\0\
    content-type\0text/plain\0\
    server\0BaseHTTP/0.6\0\
    date\0Sun, 22 Nov 2026 07:00:00 GMT\0\
    accept-ranges\0bytes\0\
    cache-control\0max-age=3600\0\
    etag\0\"1\"\0\
    age\x003\0\
    cache-status\0sluice; hit; ttl=3590; detail=hot\0";

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_abi_version_0_2_1() {}

/// Memory for Envoy's messages at the start, which the filter does not read.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_memory_allocate(_: usize) -> *mut u8 {
    static mut MEMORY: [u8; 1 << 16] = [0; 1 << 16];
    (&raw mut MEMORY).cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_context_create(_: u32, _: u32) {}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_request_headers(_: u32, _: u32, _: u32) -> u32 {
    const PAUSE: u32 = 1;
    // SAFETY: the host reads these ranges only.
    unsafe {
        proxy_send_local_response(
            200,
            b"floor".as_ptr(),
            5,
            BODY.as_ptr(),
            BODY.len(),
            HEADERS.as_ptr(),
            HEADERS.len(),
            -1,
        );
    }
    PAUSE
}

#[cfg(callbacks)]
mod callbacks {
    #[unsafe(no_mangle)]
    pub extern "C" fn proxy_on_response_headers(_: u32, _: u32, _: u32) -> u32 {
        0
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn proxy_on_response_body(_: u32, _: u32, _: u32) -> u32 {
        0
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn proxy_on_log(_: u32) {}

    #[unsafe(no_mangle)]
    pub extern "C" fn proxy_on_done(_: u32) -> u32 {
        1
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn proxy_on_delete(_: u32) {}
}
