// SPDX-License-Identifier: Apache-2.0
//! Child processes, which always end with the edge.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};

/// A child process, which is stopped when this is dropped.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
}

/// Bound on the time that a process may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(10);

impl Child {
    /// Starts `command` in a separate process group, so that Ctrl-C reaches only the edge, which then stops the
    /// process in order. Must be called from the main thread, because the process ends with the thread that started
    /// it.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let parent = rustix::process::getpid();
        command.stdin(Stdio::null()).process_group(0);
        let tie = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have ended before the call above.
            if getppid() == Some(parent) {
                Ok(())
            } else {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        };
        // SAFETY: between fork and exec the closure makes two system calls, allocates nothing and takes no lock.
        let process = unsafe { command.pre_exec(tie) }.spawn()?;
        Ok(Self { process })
    }

    /// The status with which the process has ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// Sends a signal to the process.
    pub fn signal(&mut self, signal: Signal) {
        // NB: after a process has been waited for, its id may belong to another process.
        if self.exited().is_none() {
            // The process may end in between, and then needs no signal.
            let _ = kill_process(Pid::from_child(&self.process), signal);
        }
    }

    /// Stops the process, by force if it does not end in time.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn stop(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.exited() {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.signal(Signal::KILL);
        self.process.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The edge is ending, often because of an error that matters more than this one.
        let _ = self.stop();
    }
}

/// The exit code for `status`; for a signal 128 and its number, as shells do.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
