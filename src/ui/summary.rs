//! Tier 1: a plan on one screen, from the proposal to lines.
//!
//! What matters first comes first: why, what becomes of the files, then what runs and what is risky
//! about it, in the order of the plan. Commands are always whole. Where there is too much of the
//! rest, the number of what is left out is said, and the key that shows it.

mod compact;
mod difference;
mod group;
mod reason;
mod section;
mod value;

pub use value::json;

use self::difference::FileDifference;
use self::group::{ActionGroup, in_order};
use self::section::{SectionContent, SummarySection, shares};
use super::diff::{self, FileVersions};
use super::question;
use super::risk::{self, Risk};
use super::room::TextArea;
use super::style::{StyledLine, Tone, wrap_all};
use crate::plan::PlanStatus;
use crate::plan::action::behavior::SummaryItem;
use crate::plan::action::execute::Execute;
use crate::plan::action::shape::SummaryGroup;
use crate::plan::memo::{self, Verb};
use crate::text::counted;
use crate::text::diff::Counts;
use crate::workflow::user::ReviewRequest;

/// The keys of the prompt.
pub const PROMPT: &str =
    "Execute this plan? (a)pprove all / (r)eview full plan / (m)odify / (s)kip / (q)uit › ";
/// The keys that only show something, or change it.
const MORE_KEYS: &str = "d all differences · e edit · ? help";
/// Lines of a list of actions that are shown however small the screen is.
const MIN_LISTED: usize = 1;
/// The same for memos.
const MIN_MEMOS: usize = 3;
/// The same for risks.
const MIN_RISKS: usize = 6;
/// The same for the files and their differences.
const MIN_CHANGES: usize = 5;
/// On a lower screen only commands and risks stand in full.
const LOW: usize = 20;
/// The lines around the sections.
const RULES_AND_KEYS: usize = 3;
/// The widest rule that is drawn.
const MAX_RULE: usize = 100;

/// Who sees a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A person who is asked, and has keys that show more.
    Asked,
    /// Whoever reads what is told: the plan was approved beforehand, or nobody can be asked.
    Told,
}

/// The summary of a proposal, for a room of any size.
pub struct Summary<'a> {
    /// Who sees it.
    audience: Audience,
    /// The proposal.
    proposal: &'a ReviewRequest<'a>,
    /// What becomes of the files.
    files: Vec<FileDifference>,
    /// What is risky.
    risks: Vec<Risk>,
}

impl<'a> Summary<'a> {
    /// Works out what is shown of a proposal.
    pub fn new(proposal: &'a ReviewRequest<'a>, audience: Audience) -> Summary<'a> {
        Summary {
            audience,
            proposal,
            files: difference::files(proposal.plan, proposal.simulation),
            risks: risk::risks(proposal),
        }
    }

    /// Returns what stands above everything else: title, session, turn, and what is risky about the
    /// plan as a whole and its messages.
    pub fn heading(&self) -> Vec<StyledLine> {
        let mut lines = head(self.proposal);
        lines.extend(self.whole_risk_lines());
        let actions = 0..self.proposal.plan.actions.len();
        lines.extend(actions.flat_map(|at| self.risks_of(Some(at), "  ")));
        lines
    }

    /// Returns the summary, folded to the room's width; a compact one on a low screen.
    pub fn lines(&self, room: TextArea) -> Vec<StyledLine> {
        let fits = |lines: &Vec<StyledLine>| lines.len() + prompt_rows(room.width) <= room.height;
        let whole = self.whole(room);
        if fits(&whole) || room.height >= LOW {
            return whole;
        }

        Some(compact::lines(self, room))
            .filter(fits)
            .unwrap_or(whole)
    }

    /// Returns the summary with every list, shortened where it has to be.
    fn whole(&self, room: TextArea) -> Vec<StyledLine> {
        let rule = StyledLine::of(Tone::Faint, &"─".repeat(room.width.min(MAX_RULE)));
        let mut sections = vec![
            self.reason(room.width),
            self.changes(),
            memos(&self.proposal.plan.memos),
            self.whole_risks(),
        ];
        sections.extend(self.actions());
        sections.retain(|section| !section.is_empty());
        let head = head(self.proposal);
        let fixed = head.len() + RULES_AND_KEYS + prompt_rows(room.width);
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
                .flat_map(|(section, limit)| section.lines(limit, room.width)),
        );
        lines.push(rule);
        lines.extend(self.more_keys());

        wrap_all(lines, room.width)
    }

    /// Returns the keys that the question below does not name.
    fn more_keys(&self) -> Option<StyledLine> {
        let is_asked = self.audience == Audience::Asked;
        is_asked.then(|| StyledLine::of(Tone::Faint, MORE_KEYS))
    }

    /// Returns a hint to a key, for who has keys.
    fn hint(&self, hint: &'static str) -> &'static str {
        match self.audience {
            Audience::Asked => hint,
            Audience::Told => "",
        }
    }

    /// Returns why the model wants this.
    fn reason(&self, width: usize) -> SummarySection<'_> {
        let listed = reason::lines(&self.proposal.plan.rationale, width, self.hint(reason::KEY));
        let heading = (!listed.is_empty()).then(|| StyledLine::of(Tone::Strong, " Rationale:"));
        SummarySection {
            heading,
            content: SectionContent::Listed(listed),
            room: None,
        }
    }

    /// Returns what becomes of the files.
    fn changes(&self) -> SummarySection<'_> {
        let counts = StyledLine::of(Tone::Strong, " Changes:").with(
            Tone::Plain,
            &format!(" {}  ", counted(self.files.len(), "file")),
        );
        let heading = counts.join(diff::counted(difference::counts(&self.files)));
        SummarySection {
            heading: (!self.files.is_empty()).then_some(heading),
            content: SectionContent::Files(&self.files, self.hint(difference::KEY)),
            room: Some(MIN_CHANGES),
        }
    }

    /// Returns what is risky about the whole plan, and what was read in another spelling.
    fn whole_risks(&self) -> SummarySection<'_> {
        let listed = self.whole_risk_lines();
        let heading = (!listed.is_empty()).then(|| StyledLine::of(Tone::Strong, " Look at:"));
        SummarySection {
            heading,
            content: SectionContent::Listed(listed),
            room: Some(MIN_RISKS),
        }
    }

    /// Returns the lines of what is risky about the whole plan, and of what was read in another
    /// spelling.
    fn whole_risk_lines(&self) -> Vec<StyledLine> {
        let spellings = risk::spellings(self.proposal.repair);
        let spellings = spellings.map(|text| StyledLine::of(Tone::Faint, &format!("  · {text}")));
        self.risks_of(None, "  ").chain(spellings).collect()
    }

    /// Returns what is risky about an action, or about the whole plan.
    fn risks_of(&self, action: Option<usize>, indent: &str) -> impl Iterator<Item = StyledLine> {
        let found = self.risks.iter().filter(move |risk| risk.action == action);
        found.map(move |risk| StyledLine::of(Tone::Warning, &format!("{indent}⚠ {}", risk.text)))
    }

    /// Returns the actions in the order in which they run, those of one name that follow each other
    /// together.
    fn actions(&self) -> Vec<SummarySection<'_>> {
        let heading = |line| SummarySection {
            heading: Some(line),
            content: SectionContent::Listed(Vec::new()),
            room: None,
        };
        let groups = in_order(self.proposal);
        let mut sections = vec![heading(StyledLine::of(Tone::Strong, " Action Plan:"))];
        sections.extend(groups.iter().flat_map(|group| {
            let is_split = groups.iter().filter(|other| other.row == group.row).count() > 1;
            self.sections(group, is_split)
        }));
        if self.proposal.plan.actions.is_empty() {
            sections.push(heading(StyledLine::of(Tone::Faint, "  no actions")));
        }

        sections
    }

    /// Returns a group of actions, and what is risky about them; commands are never left out.
    fn sections(&self, group: &ActionGroup, is_split: bool) -> Vec<SummarySection<'_>> {
        let heading = StyledLine::plain("  - ")
            .with(Tone::Strong, group.row.name)
            .with(Tone::Plain, &format!(": {}", group.number))
            .with(Tone::Faint, &group.how);
        let is_commands = group.row.group == SummaryGroup::Commands;
        // The files stand above, but not which of them comes before a command and which after it.
        let names = StyledLine::of(Tone::Faint, &format!("  {}", group.targets.join(", ")));
        let heading = match is_split && !is_commands {
            true => heading.join(names.cut(MAX_RULE)),
            false => heading,
        };

        let listed = group.actions.iter().flat_map(|&index| self.listed(index));
        let mut risks = Vec::new();
        if !is_commands {
            let found = group.actions.iter();
            risks.extend(found.flat_map(|&index| self.risks_of(Some(index), "    ")));
        }

        let main = SummarySection {
            heading: Some(heading),
            content: SectionContent::Listed(listed.collect()),
            room: (!is_commands).then_some(MIN_LISTED),
        };
        let risks = SummarySection {
            heading: None,
            content: SectionContent::Listed(risks),
            room: Some(MIN_RISKS),
        };
        vec![main, risks]
    }

    /// Returns the lines of one action in its group.
    fn listed(&self, index: usize) -> Vec<StyledLine> {
        let kind = &self.proposal.plan.actions[index].kind;
        match kind.summary() {
            // Its file stands among the changes.
            _ if kind.path().is_some() => Vec::new(),
            SummaryItem::Target | SummaryItem::ChangedFile => {
                vec![StyledLine::plain("      ").with(Tone::Plain, &kind.target())]
            }
            SummaryItem::Command(execute) => {
                let mut lines = command(execute);
                lines.extend(self.risks_of(Some(index), "    "));
                lines
            }
            SummaryItem::Lines(texts) => {
                let lines = texts.iter();
                lines
                    .map(|text| StyledLine::plain(&format!("      {text}")))
                    .collect()
            }
        }
    }
}

/// Returns all differences of a plan, as lines of unified diffs.
pub fn differences(proposal: &ReviewRequest<'_>) -> Vec<StyledLine> {
    difference::whole(proposal.plan, proposal.simulation)
}

/// Returns the lines of the question below it.
fn prompt_rows(width: usize) -> usize {
    question::rows(PROMPT, width).len()
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
fn memos(changes: &[memo::MemoChange]) -> SummarySection<'_> {
    let listed: Vec<StyledLine> = changes
        .iter()
        .map(|change| StyledLine::plain("  ").join(memo(change)))
        .collect();
    let heading = (!listed.is_empty()).then(|| StyledLine::of(Tone::Strong, " memos.yaml:"));
    SummarySection {
        heading,
        content: SectionContent::Listed(listed),
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

#[cfg(test)]
mod tests;
