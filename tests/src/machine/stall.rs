// SPDX-License-Identifier: Apache-2.0
//! A thread of a process that stands still, as on an overloaded machine, while the others continue.

use std::io;
use std::ptr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// A stopped thread, until this is dropped.
#[derive(Debug)]
pub struct Stall {
    /// Ends the stop when it is dropped.
    lasting: Option<Sender<()>>,
    tracer: Option<JoinHandle<()>>,
}

impl Stall {
    /// Stops the thread of that name of a process that this process has started.
    ///
    /// # Panics
    /// When there is none, or it cannot be stopped.
    #[must_use]
    pub fn of_thread(pid: u32, name: &str) -> Self {
        let thread = thread_named(pid, name);
        let (lasting, ended) = mpsc::channel();
        let (stopped, stands_still) = mpsc::channel();
        // Only the thread that has stopped it can let it continue.
        let tracer = thread::spawn(move || stop(thread, &stopped, &ended));
        stands_still
            .recv()
            .expect("a tracer that says how it went")
            .unwrap_or_else(|error| panic!("{name} of {pid} cannot be stopped: {error}"));
        Self {
            lasting: Some(lasting),
            tracer: Some(tracer),
        }
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        self.lasting.take();
        if let Some(tracer) = self.tracer.take() {
            let _ = tracer.join();
        }
    }
}

fn thread_named(pid: u32, name: &str) -> libc::pid_t {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut threads = threads.map(|thread| thread.unwrap().path());
    let thread = threads.find(|thread| {
        let named = std::fs::read_to_string(thread.join("comm"));
        named.is_ok_and(|named| named.trim_end() == name)
    });
    let thread = thread.unwrap_or_else(|| panic!("{pid} has no thread {name}"));
    let number = thread.file_name().and_then(|number| number.to_str());
    number.and_then(|number| number.parse().ok()).unwrap()
}

fn stop(thread: libc::pid_t, stopped: &Sender<io::Result<()>>, ended: &Receiver<()>) {
    let begun = trace(libc::PTRACE_SEIZE, thread)
        .and_then(|()| trace(libc::PTRACE_INTERRUPT, thread))
        .and_then(|()| wait(thread));
    let stands_still = begun.is_ok();
    // The receiver is gone if the test has failed.
    let _ = stopped.send(begun);
    if stands_still {
        let _ = ended.recv();
        // The thread may have ended meanwhile.
        let _ = trace(libc::PTRACE_DETACH, thread);
    }
}

fn trace(request: libc::c_uint, thread: libc::pid_t) -> io::Result<()> {
    let none = ptr::null_mut::<libc::c_void>();
    // SAFETY: none of these requests reads or writes memory of this process.
    let result = unsafe { libc::ptrace(request, thread, none, none) };
    succeeded(result)
}

/// Waits until the thread stands still.
fn wait(thread: libc::pid_t) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let result = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
    succeeded(libc::c_long::from(result))
}

fn succeeded(result: libc::c_long) -> io::Result<()> {
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
