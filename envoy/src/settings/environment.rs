// SPDX-License-Identifier: Apache-2.0
//! The environment variables: reads values and collects every problem.

use std::ffi::OsString;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::docs;
use super::error::{Problem, SettingsError};
use crate::origin::parse_port;

/// Looks variables up and keeps the problems found.
pub struct Environment<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
    problems: Vec<Problem>,
}

impl<'a> Environment<'a> {
    /// An environment in which `lookup` finds the variables.
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self {
            lookup,
            problems: Vec::new(),
        }
    }

    /// The value that the user set; an empty variable counts as unset.
    pub fn set(&mut self, name: &'static str) -> Option<String> {
        let value = (self.lookup)(name).filter(|value| !value.is_empty())?;
        match value.into_string() {
            Ok(value) => Some(value),
            Err(value) => {
                let shown = value.to_string_lossy().into_owned();
                self.refuse(name, Some(shown), "valid UTF-8");
                None
            }
        }
    }

    /// The value that the user set, else the setting's default where that is a value.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.set(name)
            .or_else(|| docs::default_value(name).map(str::to_owned))
    }

    /// Reads [`Self::text`] with `parse`, and refuses what `parse` does not take. `None`: the setting has no value, or
    /// the value was refused.
    pub fn parse<T>(
        &mut self,
        name: &'static str,
        accepted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let parsed = parse(&text);
        if parsed.is_none() {
            self.refuse(name, Some(text), accepted);
        }
        parsed
    }

    /// Reads one of `choices` by its name.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let (last, others) = names.split_last()?;
        let accepted = format!("{} or {last}", others.join(", "));
        self.parse(name, &accepted, |text| {
            let chosen = choices.iter().find(|(name, _)| *name == text);
            chosen.map(|(_, choice)| *choice)
        })
    }

    /// Reads a port.
    pub fn port(&mut self, name: &'static str) -> Option<u16> {
        self.parse(name, "a port from 1 to 65535", parse_port)
    }

    /// Reads an IP address.
    pub fn address(&mut self, name: &'static str) -> Option<IpAddr> {
        self.parse(name, "an IPv4 or IPv6 address", |text| text.parse().ok())
    }

    /// Reads the address of a listener from two variables.
    pub fn socket_address(&mut self, ip: &'static str, port: &'static str) -> Option<SocketAddr> {
        let (ip, port) = (self.address(ip), self.port(port));
        Some(SocketAddr::new(ip?, port?))
    }

    /// Reads a number from `LEAST` to `MOST` in decimal digits.
    pub fn count<const LEAST: u64, const MOST: u64>(
        &mut self,
        name: &'static str,
        accepted: &str,
    ) -> Option<u64> {
        self.parse(name, accepted, |text| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let count = text.parse().ok().filter(|_| digits);
            count.filter(|count| (LEAST..=MOST).contains(count))
        })
    }

    /// Reads the path of a file that must be readable, and makes it absolute.
    pub fn file(&mut self, name: &'static str) -> Option<PathBuf> {
        let text = self.set(name)?;
        let problem = match std::fs::metadata(&text) {
            Ok(metadata) if metadata.is_dir() => Some("it is a folder".to_owned()),
            Ok(_) => File::open(&text).err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            let accepted = format!("a file that can be read ({problem})");
            self.refuse(name, Some(text), accepted);
            return None;
        }
        std::path::absolute(text).ok()
    }

    /// Notes a problem.
    pub fn refuse(
        &mut self,
        name: &'static str,
        value: Option<String>,
        accepted: impl Into<String>,
    ) {
        self.problems.push(Problem {
            name,
            value,
            accepted: accepted.into(),
        });
    }

    /// The value that was read, unless any setting had a problem.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, SettingsError> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(SettingsError {
                problems: self.problems,
            }),
        }
    }
}
