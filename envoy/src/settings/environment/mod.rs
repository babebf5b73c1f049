// SPDX-License-Identifier: Apache-2.0
//! The environment variables: reads values and collects all problems.
//!
//! `secret` reads secrets from files, `service_link` recognizes variables of Kubernetes, and `names` finds misspelled
//! names.

pub mod names;
mod secret;
mod service_link;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use sluice_core::switch;

use super::docs;
use super::problem::{SettingProblem, SettingProblems};

/// Looks variables up and keeps the problems found.
pub struct Environment<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
    /// The problems, in the order of the settings.
    problems: Vec<SettingProblem>,
    /// A line for each notice, which the user should know but which does not stop the edge.
    notices: Vec<String>,
    /// A line for each note, which only `sluice check` shows.
    notes: Vec<String>,
}

impl<'a> Environment<'a> {
    /// An environment in which `lookup` finds the variables.
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self {
            lookup,
            problems: Vec::new(),
            notices: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Finds the variables.
    pub fn lookup(&self) -> &'a dyn Fn(&str) -> Option<OsString> {
        self.lookup
    }

    /// The value that the user set. A variable that is empty, or that Kubernetes has set for a Service, counts as
    /// unset.
    pub fn set(&mut self, name: &'static str) -> Option<String> {
        let value = self.find(name)?;
        match value.into_string() {
            Ok(value) => Some(value),
            Err(value) => {
                let shown = value.to_string_lossy().into_owned();
                self.refuse(name, Some(shown), "valid UTF-8");
                None
            }
        }
    }

    /// The value of a setting, by its name or its short name. Refuses two different values.
    fn find(&mut self, name: &'static str) -> Option<OsString> {
        let short = docs::short_name(name);
        let value = self.value(name);
        let by_short = short.and_then(|short| Some((short, self.value(short)?)));
        match (value, by_short) {
            (Some(value), Some((short, other))) if value != other => {
                let show = |value: &OsString| match docs::is_secret(name) {
                    true => String::new(),
                    false => format!("={value:?}"),
                };
                let (value_shown, other) = (show(&value), show(&other));
                self.report(SettingProblem::Names(format!(
                    "{name}{value_shown} and {short}{other}: expected one of the two names, or the same value in both"
                )));
                Some(value)
            }
            (Some(value), _) => Some(value),
            (None, Some((short, value))) => {
                self.note_short(short, name);
                Some(value)
            }
            (None, None) => None,
        }
    }

    /// The value of one variable, unless it is empty or Kubernetes has set it for a Service.
    fn value(&mut self, variable: &str) -> Option<OsString> {
        let value = (self.lookup)(variable).filter(|value| !value.is_empty())?;
        let Some(service) = service_link::service(variable, &value.to_string_lossy()) else {
            return Some(value);
        };
        self.notice(format!(
            "{variable}={value:?}: not a setting, as Kubernetes has set it for the Service {service:?}"
        ));
        None
    }

    /// The variable by which the user has set a setting, for messages.
    fn shown(&self, name: &'static str) -> &'static str {
        let is_set = |variable: &str| {
            let value = (self.lookup)(variable).filter(|value| !value.is_empty());
            value.is_some_and(|value| {
                service_link::service(variable, &value.to_string_lossy()).is_none()
            })
        };
        let short = docs::short_name(name).filter(|short| is_set(short) && !is_set(name));
        short.unwrap_or(name)
    }

    /// The value that the user set, or else the setting's default, if that is a value.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.set(name)
            .or_else(|| docs::default_value(name).map(str::to_owned))
    }

    /// Reads [`Self::text`] with `parse`, and refuses a text that `parse` does not accept. `None`: the setting has
    /// no value, or the value was refused.
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

    /// Reads a switch.
    pub fn switch(&mut self, name: &'static str) -> Option<bool> {
        self.parse(name, switch::ACCEPTED, switch::parse)
    }

    /// Reads a port.
    pub fn port(&mut self, name: &'static str) -> Option<u16> {
        self.number(name, 1..=u16::MAX, "a port")
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

    /// Reads a number of `range` in decimal digits. `what` is the noun for the error.
    pub fn number<T: FromStr + PartialOrd + Display>(
        &mut self,
        name: &'static str,
        range: RangeInclusive<T>,
        what: &str,
    ) -> Option<T> {
        let accepted = format!("{what} from {} to {}", range.start(), range.end());
        self.parse(name, &accepted, |text| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|_| digits);
            number.filter(|number| range.contains(number))
        })
    }

    /// Refuses a missing setting of two settings that belong together.
    pub fn pair(&mut self, one: &'static str, other: &'static str) {
        let set = [one, other].map(|name| self.set(name).is_some());
        self.check_pair(one, other, set);
    }

    /// Refuses a missing setting of two settings that belong together, if only one is `set`.
    pub fn check_pair(&mut self, one: &'static str, other: &'static str, set: [bool; 2]) {
        match set {
            [true, false] => self.refuse_missing(other, one),
            [false, true] => self.refuse_missing(one, other),
            [true, true] | [false, false] => {}
        }
    }

    fn refuse_missing(&mut self, missing: &'static str, set: &'static str) {
        let accepted = format!("must be set, as {} is", self.shown(set));
        self.refuse(missing, None, accepted);
    }

    /// Reads the path of a file that must be readable, and makes it absolute.
    pub fn file(&mut self, name: &'static str) -> Option<PathBuf> {
        let path = self.set(name)?;
        let problem = match File::open(&path).and_then(|file| file.metadata()) {
            Ok(metadata) if metadata.is_dir() => "it is a folder".to_owned(),
            Ok(_) => return std::path::absolute(path).ok(),
            Err(error) => error.to_string(),
        };
        let accepted = format!("a file that can be read ({problem})");
        self.refuse(name, Some(path), accepted);
        None
    }

    /// Reads a file that must be text.
    pub fn file_text(&mut self, name: &'static str) -> Option<String> {
        let path = self.file(name)?;
        let text = fs::read_to_string(&path);
        let refuse = |error: io::Error| {
            let accepted = format!("a file that is text ({error})");
            self.refuse(name, Some(path.display().to_string()), accepted);
        };
        text.map_err(refuse).ok()
    }

    /// Adds a problem: the accepted values, if `value` is set and not a secret, or else the action to take.
    pub fn refuse(&mut self, name: &'static str, value: Option<String>, accepted: impl Display) {
        self.report(SettingProblem::Setting {
            name: self.shown(name),
            value,
            accepted: accepted.to_string(),
        });
    }

    /// Adds a problem, once. Several readers may read one setting.
    pub fn report(&mut self, problem: SettingProblem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Adds a notice, once. A notice does not stop the edge.
    pub fn notice(&mut self, notice: String) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Notes that the user has used a short name.
    fn note_short(&mut self, short: &str, name: &str) {
        self.note(format!(
            "{short}: the name is {name}; the short name works too"
        ));
    }

    /// Adds a note, once.
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The notes so far.
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// The notices so far.
    pub fn notices(&self) -> Vec<String> {
        self.notices.clone()
    }

    /// The value that was read.
    ///
    /// # Errors
    /// [`SettingProblems`]: any setting had a problem.
    pub fn finish<T>(self, value: Option<T>) -> anyhow::Result<T> {
        let value = value.filter(|_| self.problems.is_empty());
        value.ok_or_else(|| SettingProblems(self.problems).into())
    }
}
