//! First tier of the review: the summary of a plan on one screen.
//!
//! The most important part comes first: the reason, the changed files, then commands and risks in
//! plan order. Commands are never shortened. Other lists are cut to the screen, with a count and
//! the key that shows the rest.

mod compact;
mod difference;
mod group;
mod reason;
mod section;
mod value;

pub use value::proposal_json;

use self::difference::FileDifference;
use self::group::{ActionGroup, group_in_order};
use self::section::{SectionContent, SummarySection, shares};
use super::diff::{self, FileVersions};
use super::question;
use super::risk::{self, Risk};
use super::style::{StyledLine, Tone, wrap_all};
use super::text_area::TextArea;
use crate::plan::PlanStatus;
use crate::plan::action::behavior::SummaryItem;
use crate::plan::action::execute::Execute;
use crate::plan::action::shape::SummaryGroup;
use crate::plan::memo::{self, Verb};
use crate::text::counted;
use crate::text::diff::Counts;
use crate::text::sanitize::sanitize_blanks;
use crate::workflow::user::ReviewRequest;

/// Prompt of the review, with its keys.
pub const PROMPT: &str =
    "Execute this plan? (a)pprove all / (r)eview full plan / (m)odify / (s)kip / (q)uit › ";
/// Keys that decide nothing, so the prompt omits them.
const MORE_KEYS: &str = "d all differences · e edit · ? help";
/// Minimum lines of a section on a screen of any height: actions.
const MIN_LISTED: usize = 1;
const MIN_MEMOS: usize = 3;
const MIN_RISKS: usize = 6;
const MIN_CHANGES: usize = 5;
/// On a screen with fewer lines, only commands and risks are shown in full.
const LOW: usize = 20;
/// Lines around the sections.
const RULES_AND_KEYS: usize = 3;
const MAX_RULE: usize = 100;

/// Reader of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A user who is asked, and has keys to show more.
    Asked,
    /// A reader without keys: the plan is already approved, or no question is possible.
    Informed,
}

/// Summary of a proposal, for any screen size.
pub struct Summary<'a> {
    audience: Audience,
    proposal: &'a ReviewRequest<'a>,
    files: Vec<FileDifference>,
    risks: Vec<Risk>,
}

impl<'a> Summary<'a> {
    /// Prepares the summary of a proposal.
    pub fn new(proposal: &'a ReviewRequest<'a>, audience: Audience) -> Summary<'a> {
        Summary {
            audience,
            proposal,
            files: difference::files(proposal.plan, proposal.simulation),
            risks: risk::risks(proposal),
        }
    }

    /// Returns title, session and turn, with the risks of the plan and its actions.
    pub fn heading(&self) -> Vec<StyledLine> {
        let mut lines = head(self.proposal);
        lines.extend(self.whole_risk_lines());
        let actions = 0..self.proposal.plan.actions.len();
        lines.extend(actions.flat_map(|at| self.risks_of(Some(at), "  ")));
        lines
    }

    /// Returns the summary, folded to the available width. A low screen gets a compact form if that
    /// fits.
    pub fn lines(&self, area: TextArea) -> Vec<StyledLine> {
        let fits = |lines: &Vec<StyledLine>| lines.len() + prompt_rows(area.width) <= area.height;
        let full = self.full_lines(area);
        if fits(&full) || area.height >= LOW {
            return full;
        }

        // Commands are never shortened, so the compact form can be too high as well.
        Some(compact::compact_lines(self, area))
            .filter(fits)
            .unwrap_or(full)
    }

    fn full_lines(&self, area: TextArea) -> Vec<StyledLine> {
        let rule = StyledLine::of(Tone::Faint, &"─".repeat(area.width.min(MAX_RULE)));
        let mut sections = vec![
            self.reason(area.width),
            self.changes(),
            memos(&self.proposal.plan.memos),
            self.whole_risks(),
        ];
        sections.extend(self.actions());
        sections.retain(|section| !section.is_empty());
        let head = head(self.proposal);
        let fixed = head.len() + RULES_AND_KEYS + prompt_rows(area.width);
        let remaining = area.height.saturating_sub(
            fixed
                + sections
                    .iter()
                    .map(|section| section.fixed(area.width))
                    .sum::<usize>(),
        );
        let limits = shares(&sections, remaining);
        let mut lines = head;

        lines.push(rule.clone());
        lines.extend(
            sections
                .into_iter()
                .zip(limits)
                .flat_map(|(section, limit)| section.lines(limit, area.width)),
        );
        lines.push(rule);
        lines.extend(self.more_keys());

        wrap_all(lines, area.width)
    }

    /// Keys that the prompt does not name.
    fn more_keys(&self) -> Option<StyledLine> {
        let is_asked = self.audience == Audience::Asked;
        is_asked.then(|| StyledLine::of(Tone::Faint, MORE_KEYS))
    }

    /// Empty for a reader without keys.
    fn hint(&self, hint: &'static str) -> &'static str {
        match self.audience {
            Audience::Asked => hint,
            Audience::Informed => "",
        }
    }

    fn reason(&self, width: usize) -> SummarySection<'_> {
        let listed = reason::lines(&self.proposal.plan.rationale, width, self.hint(reason::KEY));
        let heading = (!listed.is_empty()).then(|| StyledLine::of(Tone::Strong, " Rationale:"));
        SummarySection {
            heading,
            body: SectionContent::Listed(listed),
            min_lines: None,
        }
    }

    fn changes(&self) -> SummarySection<'_> {
        let counts = StyledLine::of(Tone::Strong, " Changes:").with(
            Tone::Plain,
            &format!(" {}  ", counted(self.files.len(), "file")),
        );
        let heading = counts.append(diff::counted(difference::counts(&self.files)));
        SummarySection {
            heading: (!self.files.is_empty()).then_some(heading),
            body: SectionContent::Files(&self.files, self.hint(difference::KEY)),
            min_lines: Some(MIN_CHANGES),
        }
    }

    fn whole_risks(&self) -> SummarySection<'_> {
        let listed = self.whole_risk_lines();
        let heading = (!listed.is_empty()).then(|| StyledLine::of(Tone::Strong, " Look at:"));
        SummarySection {
            heading,
            body: SectionContent::Listed(listed),
            min_lines: Some(MIN_RISKS),
        }
    }

    fn whole_risk_lines(&self) -> Vec<StyledLine> {
        let spellings = risk::spellings(self.proposal.repair);
        let spellings = spellings.map(|text| StyledLine::of(Tone::Faint, &format!("  · {text}")));
        self.risks_of(None, "  ").chain(spellings).collect()
    }

    fn risks_of(&self, action: Option<usize>, indent: &str) -> impl Iterator<Item = StyledLine> {
        let risks = self.risks.iter().filter(move |risk| risk.action == action);
        risks.map(move |risk| StyledLine::of(Tone::Warning, &format!("{indent}⚠ {}", risk.text)))
    }

    /// Groups consecutive actions of the same kind.
    fn actions(&self) -> Vec<SummarySection<'_>> {
        let heading = |line| SummarySection {
            heading: Some(line),
            body: SectionContent::Listed(Vec::new()),
            min_lines: None,
        };
        let groups = group_in_order(self.proposal);
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

    /// Commands are never shortened.
    fn sections(&self, group: &ActionGroup, is_split: bool) -> Vec<SummarySection<'_>> {
        let heading = StyledLine::plain("  - ")
            .with(Tone::Strong, group.row.name)
            .with(Tone::Plain, &format!(": {}", group.number))
            .with(Tone::Faint, &group.how);
        let is_commands = group.row.group == SummaryGroup::Commands;
        // If other kinds run between the actions, the list of changes does not show which file
        // comes before and which after.
        let names = StyledLine::of(Tone::Faint, &format!("  {}", group.targets.join(", ")));
        let heading = match is_split && !is_commands {
            true => heading.append(names.cut(MAX_RULE)),
            false => heading,
        };

        let listed = group.actions.iter().flat_map(|&index| self.listed(index));
        let mut risks = Vec::new();
        if !is_commands {
            let indices = group.actions.iter();
            risks.extend(indices.flat_map(|&index| self.risks_of(Some(index), "    ")));
        }

        let main = SummarySection {
            heading: Some(heading),
            body: SectionContent::Listed(listed.collect()),
            min_lines: (!is_commands).then_some(MIN_LISTED),
        };
        let risks = SummarySection {
            heading: None,
            body: SectionContent::Listed(risks),
            min_lines: Some(MIN_RISKS),
        };
        vec![main, risks]
    }

    fn listed(&self, index: usize) -> Vec<StyledLine> {
        let kind = &self.proposal.plan.actions[index].kind;
        match kind.summary() {
            // The file is listed among the changes.
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

/// Returns the diffs of a plan.
pub fn differences(proposal: &ReviewRequest<'_>) -> Vec<StyledLine> {
    difference::full_diff(proposal.plan, proposal.simulation)
}

/// Rows of the prompt below the summary.
fn prompt_rows(width: usize) -> usize {
    question::question_rows(PROMPT, width).len()
}

fn head(proposal: &ReviewRequest<'_>) -> Vec<StyledLine> {
    let title = &proposal.plan.title;
    let title = StyledLine::of(Tone::Accent, "▶ ")
        .with(Tone::Plain, "Reviewing Plan: ")
        .with(Tone::Strong, &format!("\"{title}\""));
    vec![title, facts(proposal)]
}

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

fn memos(changes: &[memo::MemoChange]) -> SummarySection<'_> {
    let listed: Vec<StyledLine> = changes
        .iter()
        .map(|change| StyledLine::plain("  ").append(memo(change)))
        .collect();
    let heading = (!listed.is_empty()).then(|| StyledLine::of(Tone::Strong, " memos.yaml:"));
    SummarySection {
        heading,
        body: SectionContent::Listed(listed),
        min_lines: Some(MIN_MEMOS),
    }
}

/// Returns a memo, as in `[+] ADD: text # comment`.
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

/// Returns a command, never shortened, with its directory, environment and limits.
pub fn command(execute: &Execute) -> Vec<StyledLine> {
    let mut lines: Vec<StyledLine> = Vec::new();
    for (at, text) in execute.command.lines().enumerate() {
        let sign = if at == 0 { "    $ " } else { "      " };
        lines.push(StyledLine::of(Tone::Faint, sign).with(Tone::Accent, &sanitize_blanks(text)));
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
