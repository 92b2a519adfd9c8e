//! Names of the files in a turn's tree.

use std::collections::BTreeMap;

/// The payload sent to the model.
pub const INPUT: &str = "input.md";
pub const USER_PROMPT: &str = "user_prompt.txt";
pub const SYSTEM_PROMPT: &str = "system_prompt.xml";
/// The model's raw answer, if it differs from the plan.
pub const REPLY: &str = "reply.md";
/// The plan as proposed, after repair.
pub const PLAN: &str = "plan.md";
/// The plan as it ran, if the user changed it or skipped a part.
pub const APPROVED: &str = "approved.md";
/// The user's reason for declining a plan.
pub const DECLINED: &str = "declined.txt";
/// Comments on lines of a plan's result, if it was declined or rejected.
pub const COMMENTS: &str = "comments.md";
pub const REPORT: &str = "report.md";
/// The working set, managed by the model.
pub const TURN_CONTEXT: &str = "turn.context";
/// The session's resources, managed by the user.
pub const SESSION_CONTEXT: &str = "session.context";
pub const META: &str = "meta.yaml";
/// Directory with the initial state of the next turn.
pub const NEXT: &str = "next/";
/// The user's earlier requests. The copy in [`NEXT`] includes the turn's own message.
pub const REQUESTS: &str = "requests.yaml";
/// In [`NEXT`]: a question from the model, which blocks new plans until the user answers it.
pub const QUESTION: &str = "question.md";
/// In [`NEXT`]: the model's final message when it declared the work complete.
pub const CONCLUSION: &str = "conclusion.md";
/// Transcripts of an agent that worked in the user's files.
pub const TRANSCRIPTS: [&str; 3] = [TRANSCRIPT, TRANSCRIPT_TEXT, "transcript.txt"];
/// Transcript of a model that edits files itself, as JSON lines.
pub const TRANSCRIPT: &str = "transcript.jsonl";
pub const TRANSCRIPT_TEXT: &str = "transcript.md";
/// The prompt sent in place of [`INPUT`] if an acting model resumed its conversation.
pub const RESUMED_PROMPT: &str = "told.md";
/// Result of the check that a race runs on the files of its plan.
pub const CHECK: &str = "check.yaml";
/// The judge's comparison of the plans of a race.
pub const COMPARISON: &str = "comparison.md";
/// Directory of full command outputs.
pub const OUTPUT: &str = "output/";
/// Directory of full diffs that the report truncates.
pub const CHANGES: &str = "changes/";
/// Directory of the web pages that the turn lists or has read.
pub const PAGES: &str = "pages/";
/// Directory of answers that were replaced before they ran, each in a numbered subdirectory.
pub const REPLACED: &str = "replaced/";
/// Directory of pipeline steps.
pub const STEPS: &str = "steps/";

/// Directory of file contents for the plan's TAKE actions.
pub const TAKEN_FILES: &str = "taken/";

/// Directory of long texts that `TRANSCRIPT` names.
pub const TEXTS: &str = "texts/";

/// Maximum size of a report in bytes. A fetched report is parsed and styled like any other.
pub const MAX_REPORT: usize = 8 << 20;
/// Maximum size of a question or conclusion in bytes.
pub const MAX_MODEL_MESSAGE: usize = 1 << 20;

// Top-level files (T5).
const TOP: [&str; 19] = [
    INPUT,
    USER_PROMPT,
    SYSTEM_PROMPT,
    REPLY,
    PLAN,
    APPROVED,
    DECLINED,
    COMMENTS,
    REPORT,
    TURN_CONTEXT,
    SESSION_CONTEXT,
    META,
    REQUESTS,
    TRANSCRIPT,
    TRANSCRIPT_TEXT,
    TRANSCRIPTS[2],
    RESUMED_PROMPT,
    CHECK,
    COMPARISON,
];

// Files in `NEXT` (T6).
const OF_NEXT: [&str; 6] = [
    TURN_CONTEXT,
    SYSTEM_PROMPT,
    REQUESTS,
    META,
    QUESTION,
    CONCLUSION,
];

const OF_A_STEP: [&str; 3] = [INPUT, "output.md", META];

/// Returns `true` for a valid artifact path.
pub fn is_known(name: &str) -> bool {
    // An allowlist, because a fetched turn can contain any path, including names that are special
    // to git, shells or editors.
    let Some((dir, tail)) = name.split_once('/') else {
        return TOP.contains(&name);
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_plain = |c: u8| c == b'-' || c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(is_plain);
    let ends = |end: &str| tail.strip_suffix(end);

    match &name[..=dir.len()] {
        OUTPUT => ends(".txt").is_some_and(is_number),
        CHANGES => ends(".proposed.diff")
            .or_else(|| ends(".diff"))
            .is_some_and(is_number),
        PAGES => ends(".md").is_some_and(is_word),
        TAKEN_FILES | TEXTS => is_number(tail),
        NEXT => OF_NEXT.contains(&tail),
        STEPS => tail
            .split_once('/')
            .is_some_and(|(step, file)| is_word(step) && OF_A_STEP.contains(&file)),
        // Not nested: an answer that was replaced has no `replaced/`, and recursion ends.
        REPLACED => tail.split_once('/').is_some_and(|(number, file)| {
            is_number(number) && !file.starts_with(REPLACED) && is_known(file)
        }),
        _ => false,
    }
}

/// The files of a turn, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Artifacts(pub BTreeMap<String, Vec<u8>>);

impl Artifacts {
    /// Inserts or replaces a file.
    pub fn insert(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.0.insert(name.to_owned(), bytes.into());
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns a file as text. Invalid UTF-8 is replaced.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0
            .get(name)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns a file as text, or an empty string if it does not exist.
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
             output/01.txt output/123.txt changes/02.diff changes/02.proposed.diff taken/01 texts/12 \
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
