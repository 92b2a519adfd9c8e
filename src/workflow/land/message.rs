//! The message of a commit: the user's, or a draft from the turns' titles and requests; and the
//! trailers that lead back to the turns.

use super::error::LandError;
use crate::change::id::ChangeId;
use crate::change::proposal;
use crate::change::store::ChangeStore;
use crate::git::land::commit::CommitMessage;
use crate::git::repository::Repository;
use crate::session::artifact;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::turn::{Turn, commit_subject};
use crate::text::sanitize::sanitize_line;
use crate::text::{counted, ranges};
use crate::workflow::context::message::without_output;
use crate::workflow::resume::GO_AHEAD;
use crate::workspace::file_move::trees_of;

/// Of a request.
const MAX_LINES: usize = 12;
/// In characters, as in git's own guidelines.
const WIDTH: usize = 72;
/// In characters. Linters of messages refuse lines of more than 100.
const MAX_WORD: usize = 94;
const MORE: &str = "...";
/// In the order of git's `core.commentChar=auto`.
const CHARACTERS: &str = "#;@!$%^&|:";

#[derive(Debug, Clone, Default)]
pub(super) struct TurnSummary {
    pub number: u64,
    /// The number and the id.
    pub name: String,
    pub session: String,
    pub title: String,
    /// Empty if unknown.
    pub request: String,
    /// The request of the change whose work the turn is.
    pub change: Option<String>,
    pub agent: String,
    pub model: Option<String>,
}

pub(super) fn summarize_turn(repository: &Repository, turn: &Turn) -> anyhow::Result<TurnSummary> {
    let asking = asking_turn(repository, turn)?;
    // The message of such a turn is TeDDy's instruction.
    let is_work = asking.as_ref().is_some_and(|turn| turn.meta.work.is_some());
    let request = match asking.filter(|_| !is_work) {
        Some(asking) => {
            let text = asking.text(repository, artifact::USER_PROMPT)?;
            text.map(|text| request_alone(repository, &asking, &text))
        }
        None => None,
    };
    Ok(TurnSummary {
        number: turn.number(),
        name: format!("{} {}", turn.number(), turn.meta.turn_id),
        session: turn.session.to_string(),
        title: match &turn.meta.picked {
            Some(picked) => commit_subject(&picked.title),
            None => commit_subject(&turn.title),
        },
        request: request.unwrap_or_default(),
        change: is_work.then(|| change_request(repository, turn)).flatten(),
        agent: turn.meta.agent.clone(),
        model: turn.meta.model.as_ref().map(|model| model.asked.clone()),
    })
}

/// Returns a request without what is only for the model: the output of commands, and the `@` of files.
fn request_alone(repository: &Repository, turn: &Turn, request: &str) -> String {
    let request = without_output(request);
    let files = turn.meta.workspace.as_ref();
    let files = files.and_then(|files| repository.commit(files.before).ok());
    let is_file = |name: &&str| {
        let name = name.trim_end_matches(|c: char| c.is_whitespace() || ",;:!?).".contains(c));
        let entry = files
            .as_ref()
            .map(|commit| repository.entry(commit.tree, name.as_bytes()));
        matches!(entry, Some(Ok(Some(_))))
    };
    let words = request.split_inclusive(char::is_whitespace);
    words
        .map(|word| word.strip_prefix('@').filter(is_file).unwrap_or(word))
        .collect()
}

/// Returns what the user wanted of the change of a session, or else the summary of its proposal.
/// `None` if neither can be a subject.
fn change_request(repository: &Repository, turn: &Turn) -> Option<String> {
    let id = ChangeId::of_session(&turn.session)?;
    let change = ChangeStore { repository }.read(&id).ok()?;
    let proposal = change.documents.text(proposal::FILE);
    let candidates = [
        change.state.description.unwrap_or_default(),
        proposal::read(proposal).summary,
    ];
    candidates
        .into_iter()
        .find(|text| split_request(text).is_some())
}

/// Returns the turn with what the user wanted of a turn. Messages of TeDDy and answers to the model's questions
/// continue the request before, if the turns since then are the model's and changed no file.
fn asking_turn(repository: &Repository, turn: &Turn) -> anyhow::Result<Option<Turn>> {
    let is_of_user = |turn: &Turn| is_request(repository, turn);
    let mut turn = turn.clone();
    while has_plan(&turn) {
        // Damage before a turn does not keep it from being landed.
        let previous = turn.previous;
        let previous = previous.and_then(|id| Turn::read(repository, &turn.session, id).ok());
        let previous = previous.filter(has_plan);
        // What the user wants instead of a plan says little without that plan.
        let is_instead = |previous: &Turn| previous.meta.status == Status::Declined;
        if is_of_user(&turn) && previous.as_ref().is_some_and(is_instead) {
            return Ok(None);
        }
        let question = previous.as_ref().map(|it| it.question(repository));
        let is_answer = question.transpose()?.flatten().is_some();
        if is_of_user(&turn) && !is_answer {
            break;
        }
        match previous {
            Some(previous) if !changed_files(repository, &previous)? => turn = previous,
            _ => return Ok(None),
        }
    }
    Ok(Some(turn).filter(is_of_user))
}

/// Returns whether the user wrote the message of a turn.
fn is_request(repository: &Repository, turn: &Turn) -> bool {
    let is_go_ahead = || {
        let message = turn.text(repository, artifact::USER_PROMPT);
        message.is_ok_and(|text| text.is_some_and(|text| text.trim_end() == GO_AHEAD))
    };
    turn.meta.origin == MessageOrigin::User && !is_go_ahead()
}

/// Returns whether a model was asked for the turn.
fn has_plan(turn: &Turn) -> bool {
    use Status::{Declined, Executed, Failed, Interrupted, Rejected};
    matches!(
        turn.meta.status,
        Executed | Failed | Interrupted | Rejected | Declined
    )
}

fn changed_files(repository: &Repository, turn: &Turn) -> anyhow::Result<bool> {
    let Some(workspace) = &turn.meta.workspace else {
        return Ok(false);
    };
    let [before, after] = trees_of(repository, workspace.change())?;
    Ok(before != after)
}

/// Without trailers, as a person would write it. The subject is the first request if it fits into
/// one line, else the title of the first turn. For several turns of a change, it is the request of
/// the change. Then follow the rest of the request, or the titles of
/// several turns.
pub(super) fn draft(turns: &[TurnSummary]) -> String {
    let Some(first) = turns.first() else {
        return String::new();
    };
    let request = match &first.change {
        Some(change) if turns.len() > 1 => change,
        _ => &first.request,
    };
    let (subject, rest) = match split_request(request) {
        Some((subject, rest)) => (subject, rest),
        None => (cut(&first.title, WIDTH), request.clone()),
    };
    let body = match turns.len() {
        1 => paragraphs(&rest),
        _ => titles(turns),
    };
    match body.is_empty() {
        true => format!("{subject}\n"),
        false => format!("{subject}\n\n{body}"),
    }
}

/// Openings of a request that are no part of a subject.
const OPENINGS: [&str; 4] = ["please ", "can you ", "could you ", "now "];

/// Returns the first line of a request as a subject, and the rest. `None` if there is no request, or
/// if the line is too long.
fn split_request(request: &str) -> Option<(String, String)> {
    let request = request.trim();
    let (line, rest) = request.split_once('\n').unwrap_or((request, ""));
    let line = sanitize_line(line);
    let mut subject = line.trim();
    while let Some(opening) = OPENINGS.iter().find_map(|opening| {
        let start = subject.get(..opening.len())?;
        start.eq_ignore_ascii_case(opening).then_some(opening.len())
    }) {
        subject = subject[opening..].trim_start();
    }
    // Only the end of a single sentence: other punctuation can be part of a name.
    let subject = subject.trim_end_matches(['.', '?', '!', ':']).trim_end();
    let fits = (1..=WIDTH).contains(&subject.chars().count());
    let mut chars = subject.chars();
    let first = chars.next().filter(|_| fits)?;
    // `--flag`, `src/a.rs` and `iPhone` keep their spelling.
    let is_word = chars
        .as_str()
        .split(char::is_whitespace)
        .next()
        .is_none_or(|word| word.chars().all(char::is_lowercase));
    let subject = match is_word {
        true => first.to_uppercase().chain(chars).collect(),
        false => subject.to_owned(),
    };
    Some((subject, rest.trim().to_owned()))
}

/// Turns that a draft lists.
const MAX_TITLES: usize = 20;

fn titles(turns: &[TurnSummary]) -> String {
    let mut text: String = turns
        .iter()
        .take(MAX_TITLES)
        .map(|turn| format!("- {}\n", cut(&turn.title, WIDTH - 2)))
        .collect();
    if turns.len() > MAX_TITLES {
        let more = counted(turns.len() - MAX_TITLES, "more turn");
        text.push_str(&format!("- ... ({more})\n"));
    }
    text
}

/// After a word.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }

    let short: String = line.chars().take(width - MORE.len()).collect();
    let end = short.rfind(char::is_whitespace).filter(|end| *end > 0);
    format!("{}{MORE}", short[..end.unwrap_or(short.len())].trim_end())
}

/// Wrapped. A line that git would read as a trailer is indented.
fn paragraphs(text: &str) -> String {
    let lines: Vec<String> = text
        .trim()
        .lines()
        .flat_map(|line| wrapped(&sanitize_line(line), WIDTH))
        .collect();
    let plain = |line: &String| match is_trailer(line) {
        true => format!("  {line}\n"),
        false => format!("{}\n", line.trim_end()),
    };
    let mut text: String = lines.iter().take(MAX_LINES).map(plain).collect();
    if lines.len() > MAX_LINES {
        let more = counted(lines.len() - MAX_LINES, "more line");
        text.push_str(&format!("... ({more})\n"));
    }

    text
}

/// After words. A word that is longer than a line, such as a URL, stays whole up to [`MAX_WORD`]
/// characters.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    if line.chars().count() <= width {
        return vec![line.trim_end().to_owned()];
    }

    let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    let indent = if indent.len() < width / 2 {
        indent
    } else {
        String::new()
    };
    let (mut lines, mut current) = (Vec::new(), indent.clone());
    for word in line.split_whitespace() {
        let chars: Vec<char> = word.chars().collect();
        for part in chars.chunks(MAX_WORD) {
            let is_empty = current.trim().is_empty();
            let length = current.chars().count() + usize::from(!is_empty);
            if !is_empty && length + part.len() > width {
                lines.push(std::mem::replace(&mut current, indent.clone()));
            }
            if !current.trim().is_empty() {
                current.push(' ');
            }
            current.extend(part);
        }
    }
    lines.push(current);
    lines
}

/// How git treats comments in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comments {
    /// Empty if git chooses a character that no line begins with.
    prefixes: Vec<String>,
    /// `commit.cleanup`
    cleanup: Option<String>,
}

impl Comments {
    pub(super) fn of(repository: &Repository) -> Comments {
        let keys = ["core.commentString", "core.commentChar"];
        let set: Vec<String> = keys
            .iter()
            .filter_map(|key| repository.config(key))
            .collect();
        let cleanup = repository.config("commit.cleanup");
        Comments {
            prefixes: match set.as_slice() {
                [] => vec!["#".to_owned()],
                set if set.iter().any(|prefix| prefix == "auto") => Vec::new(),
                set => set.to_vec(),
            },
            cleanup,
        }
    }

    fn strips(&self, in_editor: bool) -> bool {
        match self.cleanup.as_deref() {
            Some("strip") => true,
            None | Some("default") => in_editor,
            Some(_) => false,
        }
    }

    /// A comment character for our draft, if git would take a line of it for a comment.
    fn other_for(&self, draft: &str) -> Option<char> {
        let begins = |prefix: &str| draft.lines().any(|line| line.starts_with(prefix));
        if !self.prefixes.iter().any(|prefix| begins(prefix)) {
            return None;
        }
        CHARACTERS.chars().find(|c| !begins(&c.to_string()))
    }

    /// For a message that no editor opens: nothing but comments and these trailers.
    pub(super) fn is_empty(&self, message: &str, trailers: &[String]) -> bool {
        let is_comment = |line: &str| {
            self.strips(false) && self.prefixes.iter().any(|prefix| line.starts_with(prefix))
        };
        message.lines().map(str::trim_end).all(|line| {
            line.is_empty()
                || is_comment(line)
                || line.starts_with("Signed-off-by: ")
                || trailers.iter().any(|trailer| trailer == line)
        })
    }

    /// The draft, and the template for the editor below it.
    pub(super) fn message(
        &self,
        draft: &str,
        template: Option<&str>,
        trailers: &[String],
    ) -> CommitMessage {
        let comment = self.other_for(&with_lines(draft, trailers));
        let template = template.map(|template| match comment {
            Some(comment) => self.with_comments(template, comment),
            None => template.to_owned(),
        });
        let text = match &template {
            Some(template) => format!("{draft}\n{template}"),
            None => draft.to_owned(),
        };
        CommitMessage {
            text: with_lines(&text, trailers),
            edit: false,
            comment,
            comment_prefix: comment
                .map(String::from)
                .or_else(|| self.prefixes.last().cloned()),
            strips_comments: self.strips(true),
            trailers: trailers.to_vec(),
        }
    }

    /// With another comment character.
    fn with_comments(&self, template: &str, comment: char) -> String {
        let line = |line: &str| {
            let body = self
                .prefixes
                .iter()
                .find_map(|prefix| line.strip_prefix(prefix.as_str()));
            match body {
                Some(body) => format!("{comment}{body}\n"),
                None => format!("{line}\n"),
            }
        };
        template.lines().map(line).collect()
    }
}

/// Of the turns and of the settings, each once.
pub(super) fn trailers(
    turns: &[TurnSummary],
    further: &[String],
) -> Result<Vec<String>, LandError> {
    let mut trailers: Vec<String> = Vec::new();
    let mut add = |trailer: String| {
        if !trailers.contains(&trailer) {
            trailers.push(trailer);
        }
    };
    for turn in turns {
        add(format!("Teddy-Session: {}", turn.session));
    }

    if let [first, _, ..] = turns
        && turns.iter().all(|turn| turn.session == first.session)
    {
        let numbers: Vec<u64> = turns.iter().map(|turn| turn.number).collect();
        add(format!("Teddy-Turns: {}", ranges(&numbers)));
    }
    // Whatever leads from a line to its turn needs the ids.
    for turn in turns {
        add(format!("Teddy-Turn: {}", turn.name));
    }

    for template in further {
        if !is_trailer(template) {
            return Err(LandError::Trailer(sanitize_line(template).into_owned()));
        }

        for turn in turns {
            if let Some(trailer) = filled(template, turn) {
                add(trailer);
            }
        }
    }

    Ok(trailers)
}

pub(super) fn with_lines(message: &str, trailers: &[String]) -> String {
    let message = message.trim_end();
    // git reads only the last block of trailers.
    let last = message.rsplit("\n\n").next().unwrap_or_default();
    let has_trailers = last.len() < message.len() && last.lines().all(is_trailer);
    let gap = if has_trailers { "\n" } else { "\n\n" };
    format!("{message}{gap}{}\n", trailers.join("\n"))
}

/// `None` if the template names a model and the turn has none.
fn filled(template: &str, turn: &TurnSummary) -> Option<String> {
    let mut text = template
        .replace("{session}", &turn.session)
        .replace("{agent}", &turn.agent);
    if text.contains("{model}") {
        text = text.replace("{model}", turn.model.as_deref()?);
    }
    Some(sanitize_line(text.trim()).into_owned())
}

fn is_trailer(line: &str) -> bool {
    let Some((key, value)) = line.split_once(':') else {
        return false;
    };
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !key.is_empty() && key.chars().all(is_key) && !value.trim().is_empty() && !line.contains('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a turn of session `demo`.
    fn turn(number: u64, title: &str, request: &str) -> TurnSummary {
        TurnSummary {
            number,
            name: format!("{number} id-{number}"),
            session: "demo".to_owned(),
            title: title.to_owned(),
            request: request.to_owned(),
            change: None,
            agent: "dev".to_owned(),
            model: (number == 1).then(|| "sonnet".to_owned()),
        }
    }

    #[test]
    fn a_draft_has_the_request_and_the_turns() {
        #[track_caller]
        fn check(turns: &[TurnSummary], expected: &str) {
            assert_eq!(draft(turns), expected);
        }
        check(&[turn(1, "Add a form", " ")], "Add a form\n");
        check(&[turn(1, "Form", "add a form")], "Add a form\n");
        check(
            &[turn(
                1,
                "Form",
                "please add a form.\n\n# why\nSigned-off-by: x\n",
            )],
            "Add a form\n\n# why\n  Signed-off-by: x\n",
        );
        let long = "add a form ".repeat(8);
        check(
            &[turn(1, "Form", &long)],
            "Form\n\nadd a form add a form add a form add a form add a form add a form add a\n\
             form add a form\n",
        );
        let two = [
            turn(1, "Add a form", "please"),
            turn(2, "Test it", "continue"),
        ];
        check(&two, "Please\n\n- Add a form\n- Test it\n");
        let many: Vec<TurnSummary> = (1..=22).map(|n| turn(n, "Go on", "make it")).collect();
        let titles = "- Go on\n".repeat(20);
        check(&many, &format!("Make it\n\n{titles}- ... (2 more turns)\n"));
    }

    #[test]
    fn a_subject_is_a_request_in_the_form_of_a_title() {
        #[track_caller]
        fn check(request: &str, expected: Option<&str>) {
            let subject = split_request(request).map(|(subject, _)| subject);
            assert_eq!(subject.as_deref(), expected, "{request}");
        }
        check("Can you please add a flag?", Some("Add a flag"));
        check(
            "--verbose should print more",
            Some("--verbose should print more"),
        );
        check("src/a.rs: rename it!", Some("src/a.rs: rename it"));
        check("iPhone styles", Some("iPhone styles"));
        check("\u{fc}bersetze es", Some("\u{dc}bersetze es"));
        check("...", None);
        check(" \n", None);
        check(&"word ".repeat(20), None);
    }

    #[test]
    fn no_line_of_a_draft_is_long() {
        let sentence = "please change the number that is in a ".repeat(12);
        let title = "long title ".repeat(20);
        let url = format!("see https://example.org/{}", "x".repeat(300));
        let request = format!("{sentence}\n    {sentence}\n{url}");
        for turns in [
            vec![turn(1, &title, &request)],
            vec![turn(1, &title, &request), turn(2, &title, &url)],
        ] {
            let draft = draft(&turns);
            let longest = draft.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(100), "{draft}");
            let subject = draft.lines().next().unwrap();
            assert!(subject.chars().count() <= WIDTH, "{subject}");
            assert!(subject.ends_with("title..."), "{subject}");
        }
        assert_eq!(wrapped("ab cd ef", 5), ["ab cd", "ef"]);
        assert_eq!(wrapped("  ab cd ef", 7), ["  ab cd", "  ef"]);
    }

    #[test]
    fn a_draft_is_safe_under_every_comment_character() {
        let trailers = ["Teddy-Turn: 1 x".to_owned()];
        for prefix in ["#", ";", "//", ">", "-", "T"] {
            let comments = Comments {
                prefixes: vec![prefix.to_owned()],
                cleanup: Some("strip".to_owned()),
            };
            for draft in ["#42: fix\n\n> ask\n", "; x\n\n- a\n", "// y\n", "Plain\n"] {
                let template = format!("\n{prefix} Why:\n");
                let message = comments.message(draft, Some(&template), &trailers);
                let now = message.comment_prefix.unwrap();
                let expected: Vec<&str> = draft.lines().collect();
                let actual: Vec<&str> = message.text.lines().take(expected.len()).collect();
                assert_eq!(actual, expected, "{prefix}");
                assert!(
                    !expected.iter().any(|line| line.starts_with(&now)),
                    "{prefix} {draft}"
                );
                assert!(
                    message.text.contains(&format!("{now} Why:")),
                    "{}",
                    message.text
                );
            }
        }
    }

    #[test]
    fn a_message_of_trailers_alone_is_empty() {
        let comments = Comments {
            prefixes: vec!["#".to_owned()],
            cleanup: Some("strip".to_owned()),
        };
        let trailers = ["Teddy-Turn: 1 x".to_owned()];
        let check = |message: &str, expected| {
            assert_eq!(comments.is_empty(message, &trailers), expected, "{message}");
        };
        check("", true);
        check("\n# x\n\nTeddy-Turn: 1 x\nSigned-off-by: A <a@b>\n", true);
        check("fix: x", false);
        check("Teddy-Turn: 2 y", false);
    }

    #[test]
    fn trailers_stand_at_the_end_and_each_once() {
        let turns = [turn(1, "One", ""), turn(2, "Two", "")];
        let further = ["Assisted-by: {agent} {model}", "Reviewed: yes"].map(str::to_owned);
        let check = |message: &str, expected: &str| {
            let text = with_lines(message, &super::trailers(&turns, &further).unwrap());
            assert_eq!(text, expected);
        };
        let trailers = "Teddy-Session: demo\nTeddy-Turns: 1-2\nTeddy-Turn: 1 id-1\nTeddy-Turn: 2 id-2\n\
                        Assisted-by: dev sonnet\nReviewed: yes\n";
        check("One\n\nWords.\n", &format!("One\n\nWords.\n\n{trailers}"));
        check("fix: one", &format!("fix: one\n\n{trailers}"));
        check(
            "One\n\nSigned-off-by: A <a@b>\n",
            &format!("One\n\nSigned-off-by: A <a@b>\n{trailers}"),
        );
    }

    #[test]
    fn a_setting_that_is_no_trailer_is_refused() {
        for wrong in ["", "no trailer", "A b: c", "Key:", "Key: a\nB: c"] {
            let further = [wrong.to_owned()];
            let result = trailers(&[turn(1, "One", "")], &further);
            assert!(result.is_err(), "{wrong:?}");
        }
    }
}
