//! Page of a waiting plan: its changes, and the command that comments on them.

use maud::{Markup, html};

use super::changes::{Changes, changes};
use super::layout::{PageLocation, page, plan_page, session_crumbs};
use crate::query::view::turn_page::{ChangedFile, FileView};
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::sanitize::{sanitize_block, sanitize_line};
use crate::text::shell_word::shell_word;

pub struct ShownPlan<'a> {
    pub project: &'a str,
    pub session: &'a SessionName,
    /// Whether commands without a session's name are for this one.
    pub in_use: bool,
    pub number: u64,
    pub title: &'a str,
    /// Distinguishes it from the plan that replaces it.
    pub digest: &'a str,
    pub changes: Changes<'a>,
    /// Commands of the plan, whose changes are not known yet.
    pub commands: usize,
    /// Why the plan cannot run.
    pub mistakes: &'a [String],
}

/// A file on whose lines a comment is possible.
struct CommentedFile<'a> {
    /// In the list of changes.
    index: usize,
    path: &'a str,
    lines: usize,
}

pub fn waiting(location: PageLocation, plan: &ShownPlan<'_>) -> String {
    let files = commented_files(&plan.changes);
    let main = html! {
        h1 { span.number { (plan.number) } " " (sanitize_line(plan.title)) }
        p.facts { span { "This plan waits for your review." } }
        @for mistake in plan.mistakes {
            p.trouble role="alert" { "The plan cannot run: " (sanitize_block(mistake)) }
        }
        @if plan.commands > 0 {
            p.note {
                "What " (counted(plan.commands, "command")) " of the plan would change is unknown before the run."
            }
        }
        @if plan.changes.files.is_empty() {
            p.empty { "Its actions change no file." }
        } @else {
            section id="changes" { h2 { "Changes" } (changes(&plan.changes)) }
        }
        @if !files.is_empty() && plan.mistakes.is_empty() { (comment(plan, &files)) }
    };
    let above = session_crumbs(plan.project, plan.session);
    let title = format!("{} {}", plan.number, sanitize_line(plan.title));
    page(location, &title, &above, &[None, None], main)
}

fn commented_files<'a>(changes: &Changes<'a>) -> Vec<CommentedFile<'a>> {
    let lines = |file: &ChangedFile| match (changes.load)(file).1 {
        FileView::Text(text) => text.lines().count(),
        _ => 0,
    };
    let files = changes.files.iter().enumerate();
    let files = files.map(|(index, file)| CommentedFile {
        index,
        path: &file.path,
        lines: lines(file),
    });
    files.filter(|file| file.lines > 0).collect()
}

/// The script composes comments in the fields. Without it, the command has placeholders.
fn comment(plan: &ShownPlan<'_>, files: &[CommentedFile<'_>]) -> Markup {
    let command = match plan.in_use {
        true => "teddy execute".to_owned(),
        false => format!(
            "teddy --session {} execute",
            shell_word(plan.session.as_str())
        ),
    };
    let file = match files {
        [file] => shell_word(file.path),
        _ => "FILE".to_owned(),
    };
    html! {
        section id="comment" data-command=(command) data-plan=(plan.digest) {
            h2 { "Comment" }
            p {
                "Comments on lines, as they would be after the plan, decline it, and the model gets them as your \
                 next message. This page sends nothing: run the command in the project."
            }
            div.compose hidden {
                label {
                    "File"
                    select name="file" autocomplete="off" {
                        @for file in files {
                            option value=(shell_word(file.path)) data-file={ "file-" (file.index) }
                                data-lines=(file.lines) { (sanitize_line(file.path)) }
                        }
                    }
                }
                label {
                    "Lines, for example 3 or 3-5; a click on a line chooses it, with Shift a range"
                    input type="text" name="lines" inputmode="numeric" autocomplete="off" spellcheck="false";
                }
                label { "Comment" textarea name="text" rows="3" autocomplete="off" {} }
                p {
                    button type="button" name="add" { "Add to the command" } " "
                    button type="button" name="remove" { "Remove the last one" }
                }
                p.note role="status" {}
            }
            pre.plain tabindex="0" { code { (command) " --comment " (file) ":LINE='TEXT'" } }
        }
    }
}

/// Returns the link to a waiting plan.
pub fn link(location: PageLocation, session: &SessionName) -> Markup {
    html! {
        p { a data-item href=(location.to(&plan_page(session))) { "A plan waits for your review" } }
    }
}
