// SPDX-License-Identifier: Apache-2.0
//! A real browser, without a window.

use crate::machine::process::Process;
use std::ffi::OsString;
use std::process::Command;
use tempfile::TempDir;

/// The browser that `SLUICE_CHROMIUM` names.
#[derive(Clone, Debug)]
pub struct Browser(OsString);

/// A visit to a page.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The document after its scripts have run.
    pub document: String,
    /// The messages in the browser's console, such as violations of the page's policy.
    pub messages: Vec<String>,
}

impl Browser {
    /// Finds the browser. If there is none, prints that the test is left out.
    #[must_use]
    pub fn find() -> Option<Self> {
        let named = std::env::var_os("SLUICE_CHROMIUM").map(Self);
        if named.is_none() {
            println!("skipped: SLUICE_CHROMIUM names no browser");
        }
        named
    }

    /// The document after the page has loaded and its scripts have run.
    ///
    /// # Panics
    /// When the browser fails.
    pub async fn document(&self, url: &str) -> String {
        self.visit(url).await.document
    }

    /// Visits a page, and stays until its scripts have run for twenty seconds of virtual time.
    ///
    /// # Panics
    /// When the browser fails.
    pub async fn visit(&self, url: &str) -> Visit {
        let folder = TempDir::with_prefix("sluice-browser-").unwrap();
        let mut command = Command::new("sh");
        let console = folder.path().join("console");
        // Only the document is logged.
        command
            .args(["-c", "exec 2>\"$1\"; shift; exec \"$@\"", "sh"])
            .arg(&console)
            .arg(&self.0);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-quic",
            "--enable-logging=stderr",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ]);
        command.arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ));
        command.arg(url);
        let mut process = Process::start(command, &folder.path().join("page.html")).unwrap();
        let ended = process.ended().await;
        let document = process.log();
        assert!(ended.success(), "{ended:?}: {document}");
        let console = std::fs::read(&console).unwrap();
        let console = String::from_utf8_lossy(&console).into_owned();
        let messages = console.lines().filter(|line| line.contains(":CONSOLE"));
        Visit {
            messages: messages.map(str::to_owned).collect(),
            document,
        }
    }
}
