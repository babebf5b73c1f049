// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::arguments;
use clap::Parser as _;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::process;
use tempfile::TempDir;

fn all_pages() -> Vec<(String, String)> {
    let pages = pages(arguments::command()).unwrap().into_iter();
    pages
        .map(|page| (page.name, String::from_utf8(page.text).unwrap()))
        .collect()
}

/// The arguments of `sluice` in an example, without the variables in front, the shell's operators and its quotes. A
/// quoted text counts as several arguments.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(' ').map(|word| word.trim_start_matches("<("));
    let words = words.skip_while(|word| *word != "sluice");
    let words = words.map(|word| word.trim_end_matches(')').trim_matches('\''));
    words.take_while(|word| !["|", ">", "&&"].contains(word))
}

#[test]
fn every_command_has_a_supplement_and_every_supplement_a_command() {
    let command = arguments::command();
    let names = command.get_subcommands().map(Command::get_name);
    let names: BTreeSet<_> = names.chain([""]).collect();
    let supplements = supplement::ALL.iter().map(|known| known.command);
    assert_eq!(supplements.collect::<BTreeSet<_>>(), names);
}

#[test]
fn each_example_is_accepted_by_its_own_command() {
    for supplement in supplement::ALL {
        for (_, line) in supplement.examples {
            let parsed = arguments::Arguments::try_parse_from(words(line));
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
            let subcommand = words(line).nth(1).filter(|word| !word.starts_with('-'));
            assert_eq!(subcommand.unwrap_or_default(), supplement.command, "{line}");
        }
    }
}

#[test]
fn there_is_a_page_for_each_command_with_its_examples_and_exit_status() {
    let pages = all_pages();
    let names: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), supplement::ALL.len());
    assert!(names.contains(&"sluice.1") && names.contains(&"sluice-check.1"));
    for (name, text) in &pages {
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES"] {
            let count = text.matches(&format!("\n.SH {section}\n")).count();
            let quoted = text.matches(&format!("\n.SH \"{section}\"\n")).count();
            assert_eq!(count + quoted, 1, "{name} {section}:\n{text}");
        }
    }
}

#[test]
fn the_page_of_the_edge_lists_every_setting() {
    let (_, text) = all_pages().swap_remove(0);
    for setting in docs::settings() {
        let term = format!(".TP\n\\fB{}\\fR\n", setting.name);
        assert!(text.contains(&term), "{}", setting.name);
    }
}

#[test]
fn the_pages_are_valid_roff() {
    let folder = TempDir::new().unwrap();
    write_pages(arguments::command(), folder.path()).unwrap();
    for (name, _) in all_pages() {
        let file = folder.path().join(&name);
        assert!(file.is_file(), "{name}");
        let mut groff = process::Command::new("groff");
        let output = groff
            .args(["-man", "-ww", "-z", "-Tutf8"])
            .arg(&file)
            .output();
        match output {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                println!("left out: no groff, which is in Debian's package groff-base");
                return;
            }
            output => {
                let output = output.unwrap();
                let complaint = String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.success() && complaint.is_empty(),
                    "{complaint}"
                );
            }
        }
    }
}
