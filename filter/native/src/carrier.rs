// SPDX-License-Identifier: Apache-2.0
//! A worker's carrier: a stream that never ends. The filter's own calls belong to it, and other threads wake the
//! worker through it. Envoy gives filters no other object that lives on a worker.
//!
//! The module opens one connection for each worker to a listener on a Unix socket, which distributes them evenly. The
//! request on it is never answered. If a connection ends, the module opens another.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use crate::abi;
use crate::native_worker::NativeWorker;
use crate::process::clock::STACK_BYTES;
use crate::process::inbox::Wakes;
use crate::stream::Stream;

/// Time after which a connection is tried again.
const PAUSE: Duration = Duration::from_millis(20);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: worker\r\n\r\n";

/// Opens a connection for each worker, and opens it again if it ends.
pub fn connect_all(socket: &[u8]) {
    let socket = PathBuf::from(String::from_utf8_lossy(socket).into_owned());
    for _ in 0..abi::concurrency() {
        let socket = socket.clone();
        let thread = thread::Builder::new().name("sluice:carrier".to_owned());
        // A worker without a carrier cannot send its own calls, and its requests are not coalesced with those of
        // other workers.
        let _ = thread.stack_size(STACK_BYTES).spawn(move || {
            loop {
                // Envoy may not listen yet, or may have ended. The reason does not matter.
                let _ = hold(&socket);
                thread::sleep(PAUSE);
            }
        });
    }
}

/// Holds a connection until Envoy ends it.
fn hold(socket: &PathBuf) -> std::io::Result<()> {
    let mut connection = UnixStream::connect(socket)?;
    connection.write_all(REQUEST)?;
    let mut buffer = [0; 256];
    while connection.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Makes a stream the carrier of its worker. Returns false if the worker has one already.
pub fn begin(native_worker: &NativeWorker, stream: &Rc<Stream>) -> bool {
    if native_worker.carrier.borrow().is_some() {
        return false;
    }
    native_worker.carrier.replace(Some(Rc::clone(stream)));
    native_worker.inbox.attach(stream.filter.scheduler());
    native_worker.count_late();
    true
}

/// Handles a wake of the carrier.
pub fn serve(native_worker: &'static NativeWorker) {
    let wakes = native_worker.inbox.take();
    if wakes.has(Wakes::CONFIGURATIONS) {
        native_worker.configure_all();
        native_worker.do_tasks();
        native_worker.drop_roots();
    }
    // Messages are first, because a worker compensates for lost messages when the timer is due.
    if wakes.has(Wakes::MESSAGES) {
        native_worker.call_root(native_worker.receiver.get(), |root, worker| {
            root.on_queue_ready(worker)
        });
    }
    if wakes.has(Wakes::TICK) {
        native_worker.call_root(native_worker.ticking.get(), |root, worker| {
            root.on_tick(worker)
        });
    }
}

/// Handles the end of the carrier. The answers to its calls are lost.
pub fn end(native_worker: &'static NativeWorker, stream: &Rc<Stream>) {
    if !native_worker
        .carrier
        .borrow()
        .as_ref()
        .is_some_and(|carrier| Rc::ptr_eq(carrier, stream))
    {
        return;
    }
    native_worker.inbox.detach();
    for (call, root) in native_worker.take_calls() {
        if let Ok(call) = u32::try_from(call) {
            native_worker.call_root(root, |root, worker| {
                root.on_call_response(worker, call, false, 0)
            });
        }
    }
    native_worker.carrier.replace(None);
}
