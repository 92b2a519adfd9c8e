//! Changes that don't exist or are in the wrong phase.

use super::{Page, project};
use crate::cli::change::{put, put_with};

#[test]
fn a_change_that_is_not_there() {
    let repo = project();
    let mut page = Page::default();
    for args in [
        &["change", "show", "x"][..],
        &["change", "status", "x"],
        &["change", "impl", "x"],
        &["change", "archive", "x"],
        &["change", "plan", "x"],
        &["change", "plan", "x", "An idea"],
    ] {
        page.refused(&repo, args);
    }
    page.compare("no-change");
}

#[test]
fn a_change_that_is_not_ready() {
    let repo = project();
    for phase in [
        "proposed",
        "challenged",
        "rejected",
        "implementing",
        "complete",
        "archived",
    ] {
        put(&repo, phase, phase);
    }
    let mut page = Page::default();
    for args in [
        &["change", "impl", "proposed"][..],
        &["change", "review", "proposed"],
        &["change", "challenge", "challenged"],
        &["change", "archive", "challenged"],
        &["change", "plan", "rejected"],
        &["change", "impl", "rejected"],
        &["change", "archive", "implementing"],
        &["change", "approve", "implementing", "--reason", "fine"],
        &["change", "review", "implementing"],
        &["change", "impl", "complete"],
        &["change", "approve", "proposed", "--reason", " "],
        &["change", "impl", "archived"],
        &["change", "archive", "archived"],
    ] {
        let output = repo.teddy(args);
        if output.code == 0 {
            page.shown(&repo, args);
        } else {
            page.refused(&repo, args);
        }
    }
    page.shown(&repo, &["change", "show", "proposed", "nothing.md"]);
    page.compare("change-not-ready");
}

#[test]
fn a_change_whose_documents_are_wrong() {
    let repo = project();
    put_with(
        &repo,
        ("wrong", "proposed"),
        "# Change: other\n\n## Why\nBecause.\n",
    );
    let mut page = Page::default();
    page.refused(&repo, &["change", "challenge", "wrong"]);
    page.shown(&repo, &["change", "validate", "wrong"]);
    std::fs::write(repo.beside("notes.md"), "Notes.\n").unwrap();
    page.refused(
        &repo,
        &["change", "reproposal", "wrong", "--from", "../notes.md"],
    );
    page.compare("wrong-documents");
}
