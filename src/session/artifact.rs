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
