// SPDX-License-Identifier: Apache-2.0
//! Child processes that end with the test, however it ends.

use super::failure;
use crate::PATIENCE;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a child from a thread that lives as long as the test process. The parent-death signal is sent when the
/// *thread* that started the child ends, and a test's thread ends before the servers that tests share.
fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        let work = move || {
            for (mut command, reply) in inbox {
                let _ = reply.send(command.spawn());
            }
        };
        std::thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(work)
            .unwrap();
        Mutex::new(orders)
    });
    let (reply, child) = mpsc::channel();
    spawner.lock().unwrap().send((command, reply)).unwrap();
    child.recv().unwrap()
}

/// A child with its output in a file, leader of a new process group.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with stdout and stderr appended to `log`.
    ///
    /// # Errors
    /// When it cannot be started.
    ///
    /// # Panics
    /// When the log cannot be opened.
    pub fn start(command: Command, log: &Path) -> io::Result<Self> {
        Self::start_ending_by(libc::SIGTERM, command, log)
    }

    /// Starts `command` as [`Process::start`] does; `signal` ends it when this process has ended.
    ///
    /// # Errors
    /// When it cannot be started.
    ///
    /// # Panics
    /// When the log cannot be opened.
    pub fn start_ending_by(signal: i32, mut command: Command, log: &Path) -> io::Result<Self> {
        // All servers of tests are started here.
        failure::say_at_once();
        let file = File::options().create(true).append(true).open(log).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .process_group(0);
        // SAFETY: prctl is async-signal-safe and touches no memory of this process.
        unsafe {
            command.pre_exec(move || {
                if libc::prctl(libc::PR_SET_PDEATHSIG, signal) == 0 {
                    Ok(())
                } else {
                    Err(io::Error::last_os_error())
                }
            });
        }
        Ok(Self {
            child: spawn(command)?,
            log: log.to_owned(),
        })
    }

    /// The child's id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Exit status, if the child has ended.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its exit.
    ///
    /// # Panics
    /// When it continues to run.
    pub async fn ended(&mut self) -> ExitStatus {
        let ended = async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        ended.unwrap_or_else(|_| panic!("it does not end:\n{}", self.log()))
    }

    /// The log so far.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Sends a signal to the child only.
    pub fn signal(&self, signal: i32) {
        kill(i64::from(self.pid()), signal);
    }

    /// Asks the child to end (SIGTERM), then kills the rest of it and of its descendants.
    pub fn stop(&mut self, patience: Duration) -> Option<ExitStatus> {
        let family = descendants(self.pid());
        if self.exited().is_none() {
            self.signal(libc::SIGTERM);
        }
        let deadline = Instant::now() + patience;
        while self.exited().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let in_order = self.exited();
        kill(-i64::from(self.pid()), libc::SIGKILL);
        // A descendant may be in another process group; its start time distinguishes it from an unrelated process
        // with the same id.
        for (pid, started) in family {
            if start_time(pid) == Some(started) {
                kill(i64::from(pid), libc::SIGKILL);
            }
        }
        if in_order.is_none() {
            let _ = self.child.wait();
        }
        in_order
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(5));
    }
}

/// The servers that all tests of this process share. They are left running, because another test may follow.
static SHARED: Mutex<Vec<(u32, PathBuf)>> = Mutex::new(Vec::new());

/// Ends a server that is never dropped, and removes its folder, when this process ends, also after a failed test.
///
/// # Panics
/// When another thread has panicked in this function.
pub fn end_with_this_process(server: &Process, folder: &Path) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the function lives as long as the process.
    ONCE.call_once(|| unsafe {
        libc::atexit(end_shared);
    });
    let mut shared = SHARED.lock().unwrap();
    shared.push((server.pid(), folder.to_owned()));
}

extern "C" fn end_shared() {
    let shared = std::mem::take(&mut *SHARED.lock().unwrap_or_else(PoisonError::into_inner));
    for (pid, folder) in shared.into_iter().rev() {
        kill(-i64::from(pid), libc::SIGKILL);
        // SAFETY: it is a child of this process, and no other code waits for it any more.
        unsafe {
            libc::waitpid(pid.cast_signed(), std::ptr::null_mut(), 0);
        }
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Sends a signal to a process.
pub fn send(pid: u32, signal: i32) {
    kill(i64::from(pid), signal);
}

fn kill(pid: i64, signal: i32) {
    // SAFETY: a plain system call; a process that is gone is an error that we ignore.
    unsafe {
        libc::kill(i32::try_from(pid).unwrap(), signal);
    }
}

/// The fields of `/proc/PID/stat` after the name.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(
        text.rsplit_once(") ")?
            .1
            .split(' ')
            .map(str::to_owned)
            .collect(),
    )
}

fn start_time(pid: u32) -> Option<String> {
    stat(pid)?.into_iter().nth(19)
}

/// Whether a process has ended with all its threads, also if no other process has waited for it yet. Then its sockets
/// are closed.
#[must_use]
pub fn has_ended(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let has_one = threads.map_or(true, |threads| threads.count() <= 1);
    has_one && stat(pid).is_none_or(|fields| fields[0] == "Z")
}

/// All processes below `pid`, with their start times.
#[must_use]
pub fn descendants(pid: u32) -> BTreeMap<u32, String> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Some(stat) = stat(child) else { continue };
        if let (Ok(parent), Some(started)) = (stat[1].parse::<u32>(), stat.get(19)) {
            parents.push((child, parent, started.clone()));
        }
    }
    let mut found = BTreeMap::new();
    let mut grown = true;
    while grown {
        grown = false;
        for (child, parent, started) in &parents {
            if (*parent == pid || found.contains_key(parent)) && !found.contains_key(child) {
                found.insert(*child, started.clone());
                grown = true;
            }
        }
    }
    found
}

/// The command lines of all processes of the machine, with NUL between the words.
pub fn command_lines() -> impl Iterator<Item = String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// Name of the command of a process.
#[must_use]
pub fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Lengths of the files below `folder` that a process has open and that have no name.
#[must_use]
pub fn unnamed_files(pid: u32, folder: &Path) -> Vec<u64> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let unnamed = |file: &PathBuf| {
        let target = std::fs::read_link(file).unwrap_or_default();
        target.starts_with(folder) && target.to_string_lossy().ends_with(" (deleted)")
    };
    let files = open.into_iter().flatten().flatten().map(|file| file.path());
    let lengths = files.filter(unnamed).map(std::fs::metadata);
    lengths.flatten().map(|file| file.len()).collect()
}

/// Resident memory of a process, in KiB.
#[must_use]
pub fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?
        .trim()
        .split(' ')
        .next()?
        .parse()
        .ok()
}

/// CPU time of a process and all of its threads so far, in user space and in the kernel.
#[must_use]
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let (mut clock, mut time) = (
        0,
        libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
    );
    let pid = libc::pid_t::try_from(pid).ok()?;
    // SAFETY: both write only into their arguments.
    let known = unsafe {
        libc::clock_getcpuclockid(pid, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    let (seconds, nanoseconds) = (time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?);
    known.then(|| Duration::new(seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_cpu_time() {
        let time = || cpu_time(std::process::id()).unwrap();
        let before = time();
        while time() < before + Duration::from_millis(20) {
            std::hint::black_box(vec![0_u8; 1 << 16]);
        }
        assert_eq!(cpu_time(u32::MAX), None);
    }
}
