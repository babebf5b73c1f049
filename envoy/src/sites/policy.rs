// SPDX-License-Identifier: Apache-2.0
//! The policy of a site: its place, and its problems.

use serde_json::{Value, json};
use sluice_core::policy::PolicyError;
use sluice_core::sites::Sites;

use super::built_in::{self, READY_MADE};
use super::fields::EDGE_SECTIONS;
use super::file::{Document, Problem, join, one_of, shown};
use crate::origin::Origin;

/// A policy that a site has chosen.
#[derive(Debug)]
pub struct ChosenPolicy<'a> {
    /// The name of a policy that comes with the edge, the path of a file, or the field with the policy.
    pub name: String,
    /// The sections, as an object.
    pub value: Value,
    place: Place<'a>,
}

/// The place of a policy.
#[derive(Debug)]
enum Place<'a> {
    /// A policy that comes with the edge; the field names it.
    BuiltIn(&'a Document, String),
    /// A separate file.
    File(Document),
    /// A field of the file of sites.
    Field(&'a Document, String),
}

impl<'a> ChosenPolicy<'a> {
    /// Reads the policy in `field` of the file of sites. `value` is the value of the field: the policy or its name.
    ///
    /// # Errors
    /// The policy does not exist, or is for another kind of origin.
    pub fn read(
        sites: &'a Document,
        field: &str,
        value: Option<&Value>,
        origin: &Origin,
    ) -> Result<Self, Problem> {
        let usual = match origin {
            Origin::Bucket(_) => "bucket",
            Origin::Http(_) => "http",
        };
        let name = match value {
            Some(sections @ Value::Object(_)) => {
                return Ok(Self {
                    name: field.to_owned(),
                    value: sections.clone(),
                    place: Place::Field(sites, field.to_owned()),
                });
            }
            Some(value) => value.as_str().unwrap_or_default(),
            None => usual,
        };
        match built_in::ready_made(name) {
            Some(text) => Self::built_in(sites, field, name, text, origin),
            None => Self::file(sites, field, name),
        }
    }

    fn built_in(
        sites: &'a Document,
        field: &str,
        name: &str,
        text: &str,
        origin: &Origin,
    ) -> Result<Self, Problem> {
        let document = Document::parse(text, name, sites.folder.clone())?;
        let mut value = document.value;
        let section = value
            .as_object_mut()
            .and_then(|sections| sections.remove("origin"));
        let kind = section.as_ref().and_then(|section| section.get("kind"));
        if kind.is_some_and(|kind| Some(kind) != origin.policy_section().get("kind")) {
            let message = format!("{name:?}: expected a policy for this kind of origin, or a file");
            return Err(sites.problem(field, message));
        }
        Ok(Self {
            name: name.to_owned(),
            value,
            place: Place::BuiltIn(sites, field.to_owned()),
        })
    }

    fn file(sites: &'a Document, field: &str, name: &str) -> Result<Self, Problem> {
        let path = sites.path(name);
        std::fs::File::open(&path).map_err(|error| {
            let known: Vec<_> = READY_MADE.iter().map(|(name, _)| *name).collect();
            let message = format!(
                "{}: expected {}, or a file that can be read ({}: {error})",
                shown(&name.into()),
                one_of(&known),
                path.display()
            );
            sites.problem(field, message)
        })?;
        let document = Document::read(&path, &sites.beside(name))?;
        let value = document.value.clone();
        if !value.is_object() {
            let message = format!(
                "{}: expected a mapping with sections of the policy",
                shown(&value)
            );
            return Err(document.problem("", message));
        }
        Ok(Self {
            name: document.name.clone(),
            value,
            place: Place::File(document),
        })
    }

    /// The problems of the policy with this origin, these sections of the edge, and a site below this path.
    pub fn check(&self, edge: &Value, origin: &Origin, path: Option<&str>) -> Vec<Problem> {
        let misplaced = self.misplaced();
        if !misplaced.is_empty() {
            return misplaced;
        }
        let mut complete = self.value.clone();
        if let Some(sections) = complete.as_object_mut() {
            sections.insert("origin".to_owned(), origin.policy_section());
        }
        let error = parse(edge, &complete, path).err();
        let problem = |error: PolicyError| {
            let path = error.path().strip_prefix("sites[0].policy");
            let path = path.map(|path| path.trim_start_matches('.'));
            self.problem(path.unwrap_or_default(), &without_path(&error))
        };
        error.map(problem).into_iter().collect()
    }

    /// The sections that a site's policy must not have.
    fn misplaced(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.value.get("origin").is_some() {
            let message = "not a section of a site's policy: remove it, because the site's own field `origin` sets it";
            problems.push(self.problem("origin", message));
        }
        if self.value.get("access").is_some() {
            let message =
                "not a section of a site's policy: move it to the site's own field `access`";
            problems.push(self.problem("access", message));
        }
        for section in EDGE_SECTIONS {
            if self.value.get(section).is_some() {
                problems.push(self.belongs_to_the_edge(section));
            }
        }
        if self.value.pointer("/coalesce/lease").is_some() {
            problems.push(self.belongs_to_the_edge("coalesce.lease"));
        }
        problems
    }

    fn belongs_to_the_edge(&self, path: &str) -> Problem {
        let message =
            format!("all sites share this: move it to `edge.{path}` of the file of sites");
        self.problem(path, &message)
    }

    fn problem(&self, path: &str, message: &str) -> Problem {
        match &self.place {
            Place::File(document) => document.problem(path, message),
            Place::Field(sites, field) => sites.problem(&within(field, path), message),
            Place::BuiltIn(sites, field) => {
                sites.problem(field, format!("{:?}: {path}: {message}", self.name))
            }
        }
    }
}

/// The problem of the sections that all sites share, which are in the field `edge`.
pub fn check_edge(sites: &Document, edge: &Value) -> Option<Problem> {
    let http = json!({"origin": {"kind": "http"}});
    let error = parse(edge, &http, None).err()?;
    Some(sites.problem(error.path(), without_path(&error)))
}

/// Reads a policy like the filter, for a site below this path.
fn parse(edge: &Value, policy: &Value, path: Option<&str>) -> Result<Sites, PolicyError> {
    let path = path.unwrap_or_default();
    let site = json!({"name": "a", "path": path, "policy": policy});
    let document = json!({"edge": edge, "sites": [site]});
    Sites::parse(document.to_string().as_bytes())
}

/// The path of a field of the policy in `field`.
fn within(field: &str, path: &str) -> String {
    match path {
        "" => field.to_owned(),
        path => join(field, path),
    }
}

/// The text of an error without the path, because the problem already has it.
fn without_path(error: &PolicyError) -> String {
    let text = error.to_string();
    match text.split_once(": ") {
        Some((_, message)) => message.to_owned(),
        None => text,
    }
}
