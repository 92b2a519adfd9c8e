//! Tier 1: a plan on one screen, from the proposal to lines.
//!
//! Commands are always whole. Where a screen is too small for the rest, the number of what is
//! left out is said, and the full view has it.

mod compact;
mod value;

pub use value::json;

use std::collections::BTreeSet;

use super::diff::{self, FileVersions};
use super::question;
use super::risk;
use super::room::TextArea;
use super::style::{StyledLine, Tone, wrap_all};
use crate::plan::action::behavior::SummaryItem;
use crate::plan::action::execute::Execute;
use crate::plan::action::shape::SummaryGroup;
use crate::plan::action::{ActionRow, ROWS};
use crate::plan::memo::{self, Verb};
use crate::plan::{Plan, PlanStatus};
use crate::text::diff::Counts;
use crate::workflow::user::ReviewRequest;

/// The keys of the prompt.
pub const PROMPT: &str =
    "Execute this plan? (a)pprove all / (r)eview full plan / (m)odify / (s)kip / (q)uit › ";
/// Lines of a list of actions that are shown however small the screen is.
const MIN_LISTED: usize = 1;
/// The same for memos.
const MIN_MEMOS: usize = 3;
/// The same for risks.
const MIN_RISKS: usize = 6;
/// The widest rule that is drawn.
const MAX_RULE: usize = 100;

/// Returns the summary, folded to the room's width; a compact one where the whole does not fit and
/// that does.
pub fn lines(proposal: &ReviewRequest<'_>, room: TextArea) -> Vec<StyledLine> {
    let fits = |lines: &Vec<StyledLine>| lines.len() + prompt_rows(room.width) <= room.height;
    let whole = whole(proposal, room);
    if fits(&whole) {
        return whole;
    }

    Some(compact::lines(proposal, room))
        .filter(fits)
        .unwrap_or(whole)
}

/// Returns the lines of the question below it.
fn prompt_rows(width: usize) -> usize {
    question::rows(PROMPT, width).len()
}

/// Returns the summary with every list, shortened where it has to be.
fn whole(proposal: &ReviewRequest<'_>, room: TextArea) -> Vec<StyledLine> {
    let rule = StyledLine::of(Tone::Faint, &"─".repeat(room.width.min(MAX_RULE)));
    let mut sections = vec![memos(&proposal.plan.memos)];
    sections.extend(actions(proposal));
    sections.push(risks(proposal));
    sections.retain(|section| !section.is_empty());
    let head = head(proposal);
    let fixed = head.len() + 2 + prompt_rows(room.width) + 1;
    let left = room.height.saturating_sub(
        fixed
            + sections
                .iter()
                .map(|section| section.fixed(room.width))
                .sum::<usize>(),
    );
    let limits = shares(&sections, left);
    let mut lines = head;

    lines.push(rule.clone());
    lines.extend(
        sections
            .into_iter()
            .zip(limits)
            .flat_map(|(section, limit)| section.lines(limit)),
    );
    lines.push(rule);

    wrap_all(lines, room.width)
}

/// Returns title, session, turn, status and agent.
fn head(proposal: &ReviewRequest<'_>) -> Vec<StyledLine> {
    let title = &proposal.plan.title;
    let title = StyledLine::of(Tone::Accent, "▶ ")
        .with(Tone::Plain, "Reviewing Plan: ")
        .with(Tone::Strong, &format!("\"{title}\""));
    vec![title, facts(proposal)]
}

/// Returns session, turn, status and agent.
fn facts(proposal: &ReviewRequest<'_>) -> StyledLine {
    let plan = proposal.plan;
    let status = match plan.status() {
        Some(PlanStatus::Green) => Some("🟢 Green".to_owned()),
        Some(PlanStatus::Yellow) => Some("🟡 Yellow".to_owned()),
        Some(PlanStatus::Red) => Some("🔴 Red".to_owned()),
        None => plan.field("Status").map(str::to_owned),
    };
    let turn = (!proposal.session.is_empty())
        .then(|| format!("{} · turn {}", proposal.session, proposal.turn));
    let facts: Vec<String> = [turn, status, plan.field("Agent").map(str::to_owned)]
        .into_iter()
        .flatten()
        .filter(|f| !f.is_empty())
        .collect();

    StyledLine::of(Tone::Faint, &format!("  {}", facts.join(" · ")))
}

/// Returns the changes of the memory.
fn memos(changes: &[memo::MemoChange]) -> SummarySection {
    let listed: Vec<StyledLine> = changes
        .iter()
        .map(|change| StyledLine::plain("  ").join(memo(change)))
        .collect();
    let heading = (!listed.is_empty()).then(|| StyledLine::of(Tone::Strong, " memos.yaml:"));
    SummarySection {
        heading,
        listed,
        room: Some(MIN_MEMOS),
    }
}

/// Returns one change of the memory: `[+] ADD: text # comment`.
pub fn memo(change: &memo::MemoChange) -> StyledLine {
    let (sign, tone) = match change.verb {
        Verb::Add => ("[+] ADD:    ", Tone::Added),
        Verb::Remove => ("[-] REMOVE: ", Tone::Removed),
    };
    let comment = change
        .comment
        .as_ref()
        .map(|comment| format!(" # {comment}"))
        .unwrap_or_default();
    StyledLine::of(tone, sign)
        .with(Tone::Plain, &change.text)
        .with(Tone::Faint, &comment)
}

/// A heading and what stands below it.
struct SummarySection {
    /// `CREATE: 1 file`
    heading: Option<StyledLine>,
    /// A line for each, or more for commands.
    listed: Vec<StyledLine>,
    /// The lines that are shown however small the screen is; all of them without a number.
    room: Option<usize>,
}

impl SummarySection {
    /// Tells whether there is nothing to show.
    fn is_empty(&self) -> bool {
        self.heading.is_none() && self.listed.is_empty()
    }

    /// Returns the lines that it takes on any screen of a width.
    fn fixed(&self, width: usize) -> usize {
        let listed = if self.room.is_none() {
            wrap_all(self.listed.clone(), width).len()
        } else {
            0
        };
        usize::from(self.heading.is_some()) + listed
    }

    /// Returns its lines, at most so many of the list unless it is shown whole.
    fn lines(self, limit: usize) -> Vec<StyledLine> {
        let listed = if self.room.is_none() {
            self.listed
        } else {
            shortened(self.listed, limit)
        };
        self.heading.into_iter().chain(listed).collect()
    }
}

/// Divides lines among the lists that may be shortened: each its least, then one by one who has
/// more.
fn shares(sections: &[SummarySection], left: usize) -> Vec<usize> {
    let wanted = |section: &SummarySection| section.room.map_or(0, |_| section.listed.len());
    let mut shares: Vec<usize> = sections
        .iter()
        .map(|section| section.room.unwrap_or(0).min(section.listed.len()))
        .collect();
    let mut left = left.saturating_sub(shares.iter().sum());

    while let Some(at) = (0..sections.len())
        .filter(|&at| shares[at] < wanted(&sections[at]))
        .min_by_key(|&at| shares[at])
        .filter(|_| left > 0)
    {
        shares[at] += 1;
        left -= 1;
    }
    shares
}

/// The actions of one row of the table.
struct ActionGroup {
    /// The row.
    row: &'static ActionRow,
    /// How many they are: `2 files`.
    number: String,
    /// What is to be known of all of them, in brackets.
    how: String,
    /// Their indices.
    actions: Vec<usize>,
}

/// Returns the actions by row, as far as there are some: what changes files and what runs first.
fn groups<'a>(proposal: &'a ReviewRequest<'_>) -> impl Iterator<Item = ActionGroup> + 'a {
    let plan = proposal.plan;
    let mut rows = ROWS.to_vec();
    rows.sort_by_key(|row| row.group);

    rows.into_iter().filter_map(move |row| {
        let actions: Vec<usize> = (0..plan.actions.len())
            .filter(|&at| plan.actions[at].kind.row() == row)
            .collect();
        let number = number_of(plan, row);
        let (one, many) = row.unit;
        let number = format!("{number} {}", if number == 1 { one } else { many });
        let how = if row.group == SummaryGroup::Commands {
            format!(" ({})", proposal.confinement)
        } else {
            String::new()
        };

        (!actions.is_empty()).then_some(ActionGroup {
            row,
            number,
            how,
            actions,
        })
    })
}

/// Returns the actions, counted by name.
fn actions(proposal: &ReviewRequest<'_>) -> Vec<SummarySection> {
    let heading = |line| SummarySection {
        heading: Some(line),
        listed: Vec::new(),
        room: None,
    };
    let mut sections = vec![heading(StyledLine::of(Tone::Strong, " Action Plan:"))];
    sections.extend(groups(proposal).map(|group| section(proposal, &group)));
    if proposal.plan.actions.is_empty() {
        sections.push(heading(StyledLine::of(Tone::Faint, "  no actions")));
    }

    sections
}

/// Returns the actions of one name as a section; commands are never left out.
fn section(proposal: &ReviewRequest<'_>, group: &ActionGroup) -> SummarySection {
    let heading = StyledLine::plain("  - ")
        .with(Tone::Strong, group.row.name)
        .with(Tone::Plain, &format!(": {}", group.number));
    SummarySection {
        heading: Some(heading.with(Tone::Faint, &group.how)),
        listed: group
            .actions
            .iter()
            .flat_map(|&index| listed(proposal, index))
            .collect(),
        room: (group.row.group != SummaryGroup::Commands).then_some(MIN_LISTED),
    }
}

/// Returns how many things the actions of a row are about: a file that two of them change is one.
fn number_of(plan: &Plan, row: &ActionRow) -> usize {
    let kinds = plan.actions.iter().map(|action| &action.kind);
    let named = kinds.filter(|kind| kind.row() == row);
    if row.counts_targets {
        named
            .map(|kind| kind.target())
            .collect::<BTreeSet<_>>()
            .len()
    } else {
        named.count()
    }
}

/// Returns the lines of one action in its group.
fn listed(proposal: &ReviewRequest<'_>, index: usize) -> Vec<StyledLine> {
    let kind = &proposal.plan.actions[index].kind;
    let target = || StyledLine::plain("      ").with(Tone::Plain, &kind.target());
    match kind.summary() {
        SummaryItem::Target => vec![target()],
        SummaryItem::ChangedFile => {
            let counts = diff::counted(changed(proposal, index));
            vec![target().with(Tone::Plain, "  ").join(counts)]
        }
        SummaryItem::Command(execute) => command(execute),
        SummaryItem::Lines(texts) => {
            let lines = texts.iter();
            lines
                .map(|text| StyledLine::plain(&format!("      {text}")))
                .collect()
        }
    }
}

/// Counts the lines that come and go with an action.
fn changed(proposal: &ReviewRequest<'_>, index: usize) -> Counts {
    let (step, path) = (
        proposal.simulation.step(index),
        proposal.plan.actions[index].kind.target(),
    );
    diff::counts(&FileVersions {
        path: &path,
        before: step.before.as_deref(),
        after: step.after.as_deref(),
    })
}

/// Returns a command, whole, with its folder, variables and limits.
pub fn command(execute: &Execute) -> Vec<StyledLine> {
    let mut lines: Vec<StyledLine> = Vec::new();
    for (at, text) in execute.command.lines().enumerate() {
        let sign = if at == 0 { "    $ " } else { "      " };
        lines.push(StyledLine::of(Tone::Faint, sign).with(Tone::Accent, text));
    }

    let settings = execute.settings();
    if !settings.is_empty() {
        lines.push(StyledLine::of(
            Tone::Faint,
            &format!("      ({})", settings.join(", ")),
        ));
    }

    lines
}

/// Returns what is risky, and what was read in another spelling.
fn risks(proposal: &ReviewRequest<'_>) -> SummarySection {
    let risks = risk::risks(proposal);
    let listed: Vec<StyledLine> = risks
        .iter()
        .map(|risk| StyledLine::of(Tone::Warning, &format!("  ⚠ {}", risk.text)))
        .chain(
            risk::spellings(proposal.repair)
                .map(|text| StyledLine::of(Tone::Faint, &format!("  · {text}"))),
        )
        .collect();
    let heading = (!listed.is_empty()).then(|| StyledLine::of(Tone::Strong, " Look at:"));

    SummarySection {
        heading,
        listed,
        room: Some(MIN_RISKS),
    }
}

/// Returns at most `limit` lines, the last one saying how many are left out.
fn shortened(mut lines: Vec<StyledLine>, limit: usize) -> Vec<StyledLine> {
    if lines.len() > limit {
        let kept = limit.saturating_sub(1);
        let left_out = lines.len() - kept;
        lines.truncate(kept);
        lines.push(StyledLine::of(
            Tone::Warning,
            &format!("      … and {left_out} more: (m)odify lists them all"),
        ));
    }

    lines
}

#[cfg(test)]
mod tests;
