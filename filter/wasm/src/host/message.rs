// SPDX-License-Identifier: Apache-2.0
//! The headers and bodies of messages.

use std::ops::Range;

use sluice_core::store::header_edit::HeaderEdit;

use super::imports::{
    proxy_add_header_map_value, proxy_get_buffer_bytes, proxy_get_header_map_pairs,
    proxy_get_header_map_value, proxy_remove_header_map_value, proxy_replace_header_map_value,
    proxy_set_buffer_bytes,
};
use super::{Result, check, receive};

/// Which header map a call is about.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Map {
    /// The request's headers.
    Request = 0,
    /// The response's headers.
    Response = 2,
    /// The headers of the answer to [`http_call`].
    CallResponse = 6,
}

/// The whole of `map`, in the ABI's serialisation (see [`crate::host::headers`]).
pub fn header_pairs(map: Map) -> Result<Vec<u8>> {
    // SAFETY: both out-pointers are valid for the call; likewise in the calls below.
    receive(|data, size| unsafe { proxy_get_header_map_pairs(map as u32, data, size) })
        .map(Option::unwrap_or_default)
}

/// The value of one header; the values of several of one name joined by commas.
pub fn header(map: Map, name: &str) -> Result<Option<Vec<u8>>> {
    let value = receive(|data, size| unsafe {
        proxy_get_header_map_value(map as u32, name.as_ptr(), name.len(), data, size)
    })?;
    // Envoy answers "no such header" with an empty value.
    Ok(value.filter(|value| !value.is_empty()))
}

/// The value of one header, if it is a number.
pub fn header_number(map: Map, name: &str) -> Result<Option<u64>> {
    let value = header(map, name)?;
    Ok(value.and_then(|value| std::str::from_utf8(&value).ok()?.parse().ok()))
}

/// Sets a header in place of all of its name.
pub fn set_header(map: Map, name: &str, value: &str) -> Result<()> {
    check(unsafe {
        proxy_replace_header_map_value(
            map as u32,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        )
    })
}

/// Adds a header to those of its name.
pub fn add_header(map: Map, name: &str, value: &str) -> Result<()> {
    check(unsafe {
        proxy_add_header_map_value(
            map as u32,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        )
    })
}

/// Removes all headers of that name.
pub fn remove_header(map: Map, name: &str) -> Result<()> {
    check(unsafe { proxy_remove_header_map_value(map as u32, name.as_ptr(), name.len()) })
}

/// Carries out `edits` on a header map.
pub fn edit_headers(map: Map, edits: Vec<HeaderEdit<'_>>) -> Result<()> {
    edits.into_iter().try_for_each(|edit| match edit {
        HeaderEdit::Set(name, value) => set_header(map, name, &value),
        HeaderEdit::Remove(name) => remove_header(map, name),
    })
}

/// The plugin's configuration.
pub fn plugin_configuration(size: usize) -> Result<Vec<u8>> {
    const PLUGIN_CONFIGURATION: u32 = 7;
    receive(|data, length| unsafe {
        proxy_get_buffer_bytes(PLUGIN_CONFIGURATION, 0, size, data, length)
    })
    .map(Option::unwrap_or_default)
}

/// The body of the answer to [`http_call`], of `size` bytes.
pub fn call_body(size: usize) -> Result<Vec<u8>> {
    const CALL_RESPONSE_BODY: u32 = 4;
    receive(|data, length| unsafe {
        proxy_get_buffer_bytes(CALL_RESPONSE_BODY, 0, size, data, length)
    })
    .map(Option::unwrap_or_default)
}

const RESPONSE_BODY: u32 = 1;

/// The first `size` bytes of the request's body, as far as it is buffered.
pub fn request_body(size: usize) -> Result<Vec<u8>> {
    const REQUEST_BODY: u32 = 0;
    receive(|data, length| unsafe { proxy_get_buffer_bytes(REQUEST_BODY, 0, size, data, length) })
        .map(Option::unwrap_or_default)
}

/// Drops the first `size` bytes of the piece of the response's body that is passing.
pub fn drop_response_body(size: usize) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    replace_response_body(size, &[])
}

/// Puts `bytes` in place of the first `size` bytes of the piece of the response's body that is passing.
pub fn replace_response_body(size: usize, bytes: &[u8]) -> Result<()> {
    check(unsafe { proxy_set_buffer_bytes(RESPONSE_BODY, 0, size, bytes.as_ptr(), bytes.len()) })
}

/// Bytes of the piece of the response's body that is passing.
pub fn response_body(wanted: Range<usize>) -> Result<Vec<u8>> {
    receive(|data, size| unsafe {
        proxy_get_buffer_bytes(RESPONSE_BODY, wanted.start, wanted.len(), data, size)
    })
    .map(Option::unwrap_or_default)
}
