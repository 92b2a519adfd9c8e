//! Tier 1: a plan on one screen, from the proposal to lines.
//!
//! Commands are always whole. Where a screen is too small for the rest, the number of what is
//! left out is said, and the full view has it.

mod value;

pub use value::json;

use super::diff::{self, Change};
use super::risk;
use super::style::{Line, Tone, wrap_all};
use crate::plan::Status;
use crate::plan::action::Kind;
use crate::plan::action::execute::Execute;
use crate::plan::memo::{self, Verb};
use crate::workflow::user::Proposal;

/// The keys of the prompt.
pub const PROMPT: &str = "Execute this plan? (a)pprove all / (r)eview full plan / (m)odify / (s)kip / (q)uit › ";
/// Lines of lists that are shown however small the screen is.
const MIN_LISTED: usize = 6;
/// The widest rule that is drawn.
const MAX_RULE: usize = 100;

/// The actions' names in the order in which they are counted, with the word for what they count.
const COUNTED: [(&str, &str, &str); 9] = [
    ("CREATE", "file", "files"),
    ("EDIT", "file", "files"),
    ("EXECUTE", "command", "commands"),
    ("READ", "resource", "resources"),
    ("PRUNE", "resource", "resources"),
    ("RESEARCH", "search", "searches"),
    ("CHAT_WITH_USER", "message", "messages"),
    ("INVOKE", "agent", "agents"),
    ("CONCLUDE", "return", "returns"),
];

/// The room that a text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Columns.
    pub width: usize,
    /// Lines.
    pub height: usize,
}

/// Returns the summary, wrapped to the room's width.
pub fn lines(proposal: &Proposal<'_>, room: Room) -> Vec<Line> {
    let rule = Line::of(Tone::Faint, &"─".repeat(room.width.min(MAX_RULE)));
    let (actions, risks) = (actions(proposal), risks(proposal));
    let memos = memos(&proposal.plan.memos);
    let fixed = fixed_lines(proposal, room.width) + risks.len();
    let left = room.height.saturating_sub(fixed).max(MIN_LISTED);
    let mut lines = head(proposal);
    lines.push(rule.clone());
    lines.extend(shortened(memos, left / 2));
    lines.extend(actions.into_iter().flat_map(|group| group.lines(left)));
    lines.extend(risks);
    lines.push(rule);
    wrap_all(lines, room.width)
}

/// Returns title, session, turn, status and agent.
fn head(proposal: &Proposal<'_>) -> Vec<Line> {
    let plan = proposal.plan;
    let status = match plan.status() {
        Some(Status::Green) => Some("🟢 Green".to_owned()),
        Some(Status::Yellow) => Some("🟡 Yellow".to_owned()),
        Some(Status::Red) => Some("🔴 Red".to_owned()),
        None => plan.field("Status").map(str::to_owned),
    };
    let turn = (!proposal.session.is_empty()).then(|| format!("{} · turn {}", proposal.session, proposal.turn));
    let facts: Vec<String> =
        [turn, status, plan.field("Agent").map(str::to_owned)].into_iter().flatten().filter(|f| !f.is_empty()).collect();
    let title = Line::of(Tone::Accent, "▶ ").with(Tone::Plain, "Reviewing Plan: ").with(Tone::Strong, &format!("\"{}\"", plan.title));
    vec![title, Line::of(Tone::Faint, &format!("  {}", facts.join(" · ")))]
}

/// Returns the changes of the memory.
fn memos(changes: &[memo::Change]) -> Vec<Line> {
    let mut lines: Vec<Line> = changes.iter().map(|change| Line::plain("  ").join(memo(change))).collect();
    if !lines.is_empty() {
        lines.insert(0, Line::of(Tone::Strong, " memos.yaml:"));
    }
    lines
}

/// Returns one change of the memory: `[+] ADD: text # comment`.
pub fn memo(change: &memo::Change) -> Line {
    let (sign, tone) = match change.verb {
        Verb::Add => ("[+] ADD:    ", Tone::Added),
        Verb::Remove => ("[-] REMOVE: ", Tone::Removed),
    };
    let comment = change.comment.as_ref().map(|comment| format!(" # {comment}")).unwrap_or_default();
    Line::of(tone, sign).with(Tone::Plain, &change.text).with(Tone::Faint, &comment)
}

/// The actions of one name.
struct Group {
    /// `CREATE: 1 file`
    count: Line,
    /// A line for each, or more for commands.
    listed: Vec<Line>,
    /// Whether all lines are shown however small the screen is.
    whole: bool,
}

impl Group {
    /// Returns its lines; where they may be shortened, at most `limit` of the list.
    fn lines(self, limit: usize) -> Vec<Line> {
        let listed = if self.whole { self.listed } else { shortened(self.listed, limit) };
        std::iter::once(self.count).chain(listed).collect()
    }
}

/// Returns the actions, counted by name.
fn actions(proposal: &Proposal<'_>) -> Vec<Group> {
    let mut groups = vec![Group { count: Line::of(Tone::Strong, " Action Plan:"), listed: Vec::new(), whole: true }];
    groups.extend(COUNTED.iter().filter_map(|&(name, one, many)| group(proposal, name, (one, many))));
    if proposal.plan.actions.is_empty() {
        groups.push(Group { count: Line::of(Tone::Faint, "  no actions"), listed: Vec::new(), whole: true });
    }
    groups
}

/// Returns the actions of one name, if there are any.
fn group(proposal: &Proposal<'_>, name: &str, (one, many): (&str, &str)) -> Option<Group> {
    let chosen: Vec<usize> = (0..proposal.plan.actions.len()).filter(|&at| proposal.plan.actions[at].kind.name() == name).collect();
    let number = chosen.len();
    let word = if number == 1 { one } else { many };
    let how = if name == "EXECUTE" { format!(" ({})", proposal.confinement) } else { String::new() };
    let count = Line::plain("  - ").with(Tone::Strong, name).with(Tone::Plain, &format!(": {number} {word}")).with(Tone::Faint, &how);
    let listed = chosen.iter().flat_map(|&index| listed(proposal, index)).collect();
    (number > 0).then_some(Group { count, listed, whole: name == "EXECUTE" })
}

/// Returns the lines of one action in its group.
fn listed(proposal: &Proposal<'_>, index: usize) -> Vec<Line> {
    let kind = &proposal.plan.actions[index].kind;
    let line = Line::plain("      ").with(Tone::Plain, &kind.target());
    match kind {
        Kind::Execute(execute) => command(execute),
        Kind::Create(_) | Kind::Edit(_) => {
            let step = proposal.simulation.steps.get(index).cloned().unwrap_or_default();
            let change = Change { path: &kind.target(), before: step.before.as_deref(), after: step.after.as_deref() };
            vec![line.with(Tone::Plain, "  ").join(diff::counted(diff::counts(&change)))]
        }
        Kind::Research(research) => research.queries.iter().map(|query| Line::plain(&format!("      {query}"))).collect(),
        _ => vec![line],
    }
}

/// Returns a command, whole, with its folder, variables and limits.
pub fn command(execute: &Execute) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (at, text) in execute.command.lines().enumerate() {
        let sign = if at == 0 { "    $ " } else { "      " };
        lines.push(Line::of(Tone::Faint, sign).with(Tone::Accent, text));
    }
    let folder = execute.cwd.as_ref().map(|cwd| format!("in {cwd}"));
    let env = execute.env.iter().map(|(name, value)| format!("{name}={value}"));
    let limit = execute.timeout.map(|limit| format!("at most {} s", limit.as_secs()));
    let failure = execute.allow_failure.then(|| "may fail".to_owned());
    let facts: Vec<String> = folder.into_iter().chain(env).chain(limit).chain(failure).collect();
    if !facts.is_empty() {
        lines.push(Line::of(Tone::Faint, &format!("      ({})", facts.join(", "))));
    }
    lines
}

/// Returns what is risky.
fn risks(proposal: &Proposal<'_>) -> Vec<Line> {
    let risks = risk::risks(proposal);
    let mut lines: Vec<Line> = risks.iter().map(|risk| Line::of(Tone::Warning, &format!("  ⚠ {}", risk.text))).collect();
    if !lines.is_empty() {
        lines.insert(0, Line::of(Tone::Strong, " Look at:"));
    }
    lines
}

/// Counts the lines that are always shown.
fn fixed_lines(proposal: &Proposal<'_>, width: usize) -> usize {
    let groups = actions(proposal);
    let whole = groups.iter().filter(|group| group.whole).flat_map(|group| group.listed.clone());
    let prompt = PROMPT.len() / width.max(1) + 2;
    head(proposal).len() + 2 + groups.len() + wrap_all(whole.collect(), width).len() + prompt
}

/// Returns at most `limit` lines, the last one saying how many are left out.
fn shortened(mut lines: Vec<Line>, limit: usize) -> Vec<Line> {
    let limit = limit.max(2);
    if lines.len() > limit {
        let left_out = lines.len() - (limit - 1);
        lines.truncate(limit - 1);
        lines.push(Line::of(Tone::Warning, &format!("      … and {left_out} more: (m)odify lists them all")));
    }
    lines
}

#[cfg(test)]
mod tests;
