//! The files of a turn's tree, by name.

use std::collections::BTreeMap;

/// What the model got.
pub const INPUT: &str = "input.md";
/// What the user asked for.
pub const USER_PROMPT: &str = "user_prompt.txt";
/// The agent's instructions.
pub const SYSTEM_PROMPT: &str = "system_prompt.xml";
/// The model's raw answer, where it differs from the plan.
pub const REPLY: &str = "reply.md";
/// The plan as proposed, after repair.
pub const PLAN: &str = "plan.md";
/// The plan as it ran, where the user changed or left out something of the proposed one.
pub const APPROVED: &str = "approved.md";
/// What the user said about a plan that they declined.
pub const DECLINED: &str = "declined.txt";
/// What happened.
pub const REPORT: &str = "report.md";
/// The working set, which the model manages.
pub const TURN_CONTEXT: &str = "turn.context";
/// The session's resources, which the user manages.
pub const SESSION_CONTEXT: &str = "session.context";
/// Facts about the turn.
pub const META: &str = "meta.yaml";
/// The folder of the state that the turn gives to the next one.
pub const NEXT: &str = "next/";
/// What the user asked for in the session before the turn; in [`NEXT`] with the turn's own message.
pub const REQUESTS: &str = "requests.yaml";
/// In [`NEXT`]: what the model asks the user; nothing goes on before it is answered.
pub const QUESTION: &str = "question.md";
/// In [`NEXT`]: what the model said when it called the work done.
pub const CONCLUSION: &str = "conclusion.md";
/// What an agent that worked in the user's files wrote down of it, by its kind: in lines of JSON, as
/// Markdown, or as any other text.
pub const TRANSCRIPTS: [&str; 3] = [TRANSCRIPT, TRANSCRIPT_TEXT, "transcript.txt"];
/// What a model that edits files itself said and did, as JSON lines.
pub const TRANSCRIPT: &str = "transcript.jsonl";
/// The same, to be read.
pub const TRANSCRIPT_TEXT: &str = "transcript.md";
/// What a model that edits files itself was told in place of [`INPUT`], where its conversation went
/// on.
pub const TOLD: &str = "told.md";
/// What a check found on what the plan of a race makes.
pub const CHECK: &str = "check.yaml";
/// What the judge of a race says of the plans.
pub const COMPARISON: &str = "comparison.md";
/// The folder of commands' full output.
pub const OUTPUT: &str = "output/";
/// The folder of what became of files, where the report shows a part of it.
pub const CHANGES: &str = "changes/";
/// The folder of the pages that the turn shows or has read.
pub const PAGES: &str = "pages/";
/// The folder of the answers that never ran because something else took their place, a folder for
/// each.
pub const REPLACED: &str = "replaced/";
/// The folder of a pipeline's steps.
pub const STEPS: &str = "steps/";

/// The folder of the bytes that a plan's TAKEs take over.
pub const TAKEN: &str = "taken/";

/// A report has at most so many bytes: one from elsewhere is parsed and styled like any other.
pub const MAX_REPORT: usize = 8 << 20;
/// A question and a conclusion have at most so many.
pub const MAX_SAID: usize = 1 << 20;

/// The files at the top of a turn (T5).
const TOP: [&str; 18] = [
    INPUT,
    USER_PROMPT,
    SYSTEM_PROMPT,
    REPLY,
    PLAN,
    APPROVED,
    DECLINED,
    REPORT,
    TURN_CONTEXT,
    SESSION_CONTEXT,
    META,
    REQUESTS,
    TRANSCRIPT,
    TRANSCRIPT_TEXT,
    TRANSCRIPTS[2],
    TOLD,
    CHECK,
    COMPARISON,
];

/// The files in [`NEXT`] (T6).
const OF_NEXT: [&str; 6] = [
    TURN_CONTEXT,
    SYSTEM_PROMPT,
    REQUESTS,
    META,
    QUESTION,
    CONCLUSION,
];

/// The files of a pipeline's step.
const OF_A_STEP: [&str; 3] = [INPUT, "output.md", META];

/// Returns whether a file of a turn can have this name. A turn from elsewhere may have any: names
/// that mean something to git, to a shell or to an editor are none of these.
pub fn is_known(name: &str) -> bool {
    let Some((folder, rest)) = name.split_once('/') else {
        return TOP.contains(&name);
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_plain = |c: u8| c == b'-' || c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(is_plain);
    let ends = |end: &str| rest.strip_suffix(end);

    match &name[..=folder.len()] {
        OUTPUT => ends(".txt").is_some_and(is_number),
        CHANGES => ends(".proposed.diff")
            .or_else(|| ends(".diff"))
            .is_some_and(is_number),
        PAGES => ends(".md").is_some_and(is_word),
        TAKEN => is_number(rest),
        NEXT => OF_NEXT.contains(&rest),
        STEPS => rest
            .split_once('/')
            .is_some_and(|(step, file)| is_word(step) && OF_A_STEP.contains(&file)),
        REPLACED => rest.split_once('/').is_some_and(|(number, file)| {
            is_number(number) && !file.starts_with(REPLACED) && is_known(file)
        }),
        _ => false,
    }
}

/// The files of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Artifacts(pub BTreeMap<String, Vec<u8>>);

impl Artifacts {
    /// Puts a file, in place of one of the same name.
    pub fn put(&mut self, name: &str, content: impl Into<Vec<u8>>) {
        self.0.insert(name.to_owned(), content.into());
    }

    /// Takes a file away.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns a file as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0
            .get(name)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns a file as text, empty where there is none.
    pub fn text_or_empty(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &str, expected: bool) {
        for name in names.split_whitespace() {
            assert_eq!(is_known(name), expected, "{name}");
        }
    }

    #[test]
    fn t5_the_files_of_a_turn_are_known_by_their_names() {
        check(
            "input.md user_prompt.txt transcript.txt declined.txt meta.yaml next/question.md \
             output/01.txt output/123.txt changes/02.diff changes/02.proposed.diff taken/01 \
             pages/0a1b2c3d4e5f.md steps/01-plan/input.md steps/12-a-b/output.md \
             replaced/01/plan.md replaced/02/steps/01-plan/meta.yaml replaced/01/taken/03",
            true,
        );
        check(
            "HEAD config objects/x refs/x .git/config Input.md meta.yaml/ next/HEAD output/HEAD \
             output/.git output/x.txt output/01/x.txt output/.txt changes/01.txt taken/.git \
             pages/.md pages/AGENTS.md pages/a/b.md steps/.git/input.md steps/01/x \
             steps/../meta.yaml steps//meta.yaml replaced/../plan.md replaced/01/HEAD \
             replaced/01/replaced/01/plan.md /meta.yaml ../meta.yaml ./meta.yaml",
            false,
        );
        assert!(!is_known(""));
    }
}
