// SPDX-License-Identifier: Apache-2.0
//! The manual pages: one page for `sluice` and one for each subcommand, from the arguments and their supplements.

mod supplement;

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use sluice::settings::docs;

pub use supplement::Supplement;
use supplement::Term;

/// A page and the name of its file.
#[derive(Debug)]
pub struct ManualPage {
    /// The name of the file, such as `sluice-check.1`.
    pub name: String,
    /// The page, in roff.
    pub text: Vec<u8>,
}

/// The pages of `command` and of its subcommands. The page of `command` is the first one.
///
/// # Errors
/// A page cannot be made.
pub fn pages(command: Command) -> io::Result<Vec<ManualPage>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.get_version().unwrap_or_default().to_owned();
    let source = format!("Sluice {}", version.split(' ').next().unwrap_or_default());
    let mut pages = vec![page(&command, "", &source)?];
    for subcommand in command.get_subcommands() {
        pages.push(page(subcommand, subcommand.get_name(), &source)?);
    }
    Ok(pages)
}

/// Writes all pages of `command` to `folder`, which is created if it does not exist.
///
/// # Errors
/// A page cannot be written.
pub fn write_pages(command: Command, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for page in pages(command)? {
        let file = folder.join(page.name);
        fs::write(&file, page.text).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

fn page(command: &Command, subcommand: &str, source: &str) -> io::Result<ManualPage> {
    // The help's end has the sections of the supplement, which the page has as its own sections.
    let man = Man::new(command.clone()).source(source).manual("Sluice");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    let mut sections = Roff::new();
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
        add_settings(&mut sections);
    }
    if let Some(supplement) = Supplement::of(subcommand) {
        add_terms(&mut sections, "EXIT STATUS", supplement.exit_status);
        add_terms(&mut sections, "FILES", supplement.files);
        add_examples(&mut sections, supplement.examples);
    }
    if !subcommand.is_empty() {
        sections.control("SH", ["SEE ALSO"]);
        sections.text([bold("sluice"), roman("(1), which lists the settings")]);
    }
    sections.to_writer(&mut text)?;
    let name = man.get_filename();
    Ok(ManualPage { name, text })
}

fn add_settings(sections: &mut Roff) {
    sections.control("SH", ["ENVIRONMENT"]);
    sections.text([roman(
        "The settings are environment variables. An empty variable counts as unset.",
    )]);
    for setting in docs::settings() {
        let about = format!("{}. {}", setting.meaning(), setting.form_and_default());
        add_term(sections, setting.name, &about);
    }
}

fn add_terms(sections: &mut Roff, heading: &str, terms: &[Term]) {
    if terms.is_empty() {
        return;
    }
    sections.control("SH", [heading]);
    for (term, meaning) in terms {
        add_term(sections, term, meaning);
    }
}

fn add_term(sections: &mut Roff, term: &str, meaning: &str) {
    sections.control("TP", []);
    sections.text([bold(term)]);
    sections.text([roman(meaning)]);
}

fn add_examples(sections: &mut Roff, examples: &[Term]) {
    sections.control("SH", ["EXAMPLES"]);
    for (meaning, line) in examples {
        sections.control("PP", []);
        sections.text([roman(format!("{meaning}:"))]);
        sections.control("PP", []);
        sections.control("nf", []);
        sections.control("RS", []);
        sections.text([bold(*line)]);
        sections.control("RE", []);
        sections.control("fi", []);
    }
}

#[cfg(test)]
mod tests;
