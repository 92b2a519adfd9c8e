//! First tier of the review: the summary of a plan on one screen.
//!
//! The most important part comes first: the reason, the changed files, then commands and risks in
//! plan order. Commands are never shortened. Other lists are cut to the screen, with a count and
//! the key that shows the rest.

mod difference;
mod reason;
mod section;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::difference::FileDifference;
pub use self::difference::{ReviewedFile, reviewed_files};
use self::section::{SectionContent, SummarySection, shares};

use super::diff::{self, FileVersions};
use super::risk::{self, Risk};
use super::style::{StyledLine, Tone, wrap_all};
use crate::model::acting::transcript::CommandCounts;
use crate::plan::action::behavior::SummaryItem;
use crate::plan::action::execute::Execute;
use crate::plan::action::{ActionRow, ROWS, SummaryGroup};
use crate::plan::damage::plan_damage;
use crate::plan::memo::{self, Verb};
use crate::plan::{Plan, PlanStatus};
use crate::session::comments::FollowedComment;
use crate::text::counted;
use crate::text::diff::Counts;
use crate::text::sanitize::sanitize_blanks;
use crate::ui::ask;
use crate::ui::style::TextArea;
use crate::workflow::user::ReviewRequest;

/// Prompt of the review, with its keys.
pub const PROMPT: &str =
    "Execute this plan? (a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit › ";

/// Minimum lines of a section on a screen of any height: actions.
const MIN_LISTED: usize = 1;

const MIN_MEMOS: usize = 3;
const MIN_RISKS: usize = 6;
const MIN_CHANGES: usize = 5;

/// On a screen with fewer lines, only commands and risks are shown in full.
const LOW: usize = 20;

/// Lines around the sections.
const RULES: usize = 2;

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
    /// Whether the plan damages bytes that the user can keep.
    pub damages_bytes: bool,
}

impl<'a> Summary<'a> {
    pub fn new(proposal: &'a ReviewRequest<'a>, audience: Audience) -> Summary<'a> {
        let damage = plan_damage(proposal.plan, proposal.simulation);
        Summary {
            audience,
            proposal,
            files: difference::files(proposal.plan, proposal.simulation),
            risks: risk::risks(proposal, &damage),
            damages_bytes: damage.iter().any(|found| found.damage.is_of_bytes()),
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
        Some(compact_lines(self, area)).filter(fits).unwrap_or(full)
    }

    fn full_lines(&self, area: TextArea) -> Vec<StyledLine> {
        let rule = StyledLine::of(Tone::Faint, &"─".repeat(area.width.min(MAX_RULE)));
        let mut sections = vec![
            self.reason(area.width),
            self.changes(),
            memos(&self.proposal.plan.memos),
            SummarySection::titled(" Look at:", self.whole_risk_lines(), Some(MIN_RISKS)),
        ];
        sections.extend(self.actions());
        sections.retain(|section| !section.is_empty());
        let head = wrap_all(head(self.proposal), area.width);
        let keys = self.more_keys(area.width);
        let fixed = head.len() + RULES + keys.len() + prompt_rows(area.width);
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

        let mut lines = wrap_all(lines, area.width);
        lines.extend(keys);
        lines
    }

    /// Returns the keys that the prompt omits, wrapped to the width. Empty for a reader without keys.
    fn more_keys(&self, width: usize) -> Vec<StyledLine> {
        if self.audience == Audience::Informed {
            return Vec::new();
        }
        let keys = [
            Some("enter approves"),
            Some("d diff"),
            self.transcript().map(|_| "t transcript"),
            Some("c comment"),
            self.damages_bytes.then_some("B keep your bytes"),
            Some("?"),
        ];
        let keys: Vec<&str> = keys.into_iter().flatten().collect();
        wrap_all(vec![StyledLine::of(Tone::Faint, &keys.join(" · "))], width)
    }

    /// Returns the rendered transcript of the agent that made the plan.
    pub fn transcript(&self) -> Option<&str> {
        self.proposal.transcript
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
        SummarySection::titled(" Rationale:", listed, None)
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

    fn whole_risk_lines(&self) -> Vec<StyledLine> {
        // Someone who is asked has a key for it.
        let reading = self
            .reading()
            .filter(|_| self.audience == Audience::Informed);
        self.risks_of(None, "  ").chain(reading).collect()
    }

    /// Returns how free spellings of the format were read; `None` without any.
    pub fn reading(&self) -> Option<StyledLine> {
        let text = risk::spellings(self.proposal.repair)?;
        Some(StyledLine::of(
            Tone::Faint,
            &format!("  The plan was {text}"),
        ))
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
    ask::question_rows(PROMPT, width).len()
}

fn head(proposal: &ReviewRequest<'_>) -> Vec<StyledLine> {
    let title = &proposal.plan.title;
    let title = StyledLine::of(Tone::Accent, "▶ ")
        .with(Tone::Plain, "Reviewing Plan: ")
        .with(Tone::Strong, &format!("\"{title}\""));
    let mut lines = vec![title, facts(proposal)];
    lines.extend(agent_commands(proposal.agent_commands));
    lines
}

/// Returns what the agent ran and how that ended; `None` if it ran nothing.
fn agent_commands(commands: CommandCounts) -> Option<StyledLine> {
    let CommandCounts {
        ran,
        failed,
        is_minimum,
    } = commands;
    if ran == 0 {
        return None;
    }
    let at_least = if is_minimum { "at least " } else { "" };
    let ran = format!("  The agent ran {at_least}{}", counted(ran, "command"));
    Some(match failed {
        0 => StyledLine::of(Tone::Faint, &ran),
        failed => StyledLine::of(Tone::Faint, &format!("{ran}, "))
            .with(Tone::Warning, &format!("{at_least}{failed} failed")),
    })
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
    let lines = changes.iter();
    let lines = lines.map(|change| StyledLine::plain("  ").append(memo(change)));
    SummarySection::titled(" memos.yaml:", lines.collect(), Some(MIN_MEMOS))
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

fn compact_lines(summary: &Summary<'_>, area: TextArea) -> Vec<StyledLine> {
    let proposal = summary.proposal;
    let title = StyledLine::of(Tone::Accent, "▶ ").with(Tone::Strong, &proposal.plan.title);
    let mut lines = vec![
        // Cut these two. Commands and risks are wrapped instead.
        title.cut(area.width),
        facts(proposal).cut(area.width),
    ];
    lines.extend(agent_commands(proposal.agent_commands));
    lines.push(StyledLine::of(Tone::Faint, &"─".repeat(area.width)));
    lines.extend(memo_counts(proposal));
    let counts = StyledLine::plain(&format!(" {}", action_counts(proposal).join(", ")));
    lines.push(match summary.files.as_slice() {
        [] => counts,
        files => counts
            .with(Tone::Plain, "  ")
            .append(diff::counted(difference::counts(files))),
    });

    lines.extend(summary.whole_risk_lines());
    for (index, action) in proposal.plan.actions.iter().enumerate() {
        if let Some(execute) = action.kind.command() {
            lines.extend(command(execute));
        }
        lines.extend(summary.risks_of(Some(index), "  "));
    }

    let mut lines = wrap_all(lines, area.width);
    let keys = summary.more_keys(area.width);
    if lines.len() + keys.len() + prompt_rows(area.width) <= area.height {
        lines.extend(keys);
    }
    lines
}

fn memo_counts(proposal: &ReviewRequest<'_>) -> Option<StyledLine> {
    let number = |verb: Verb| {
        proposal
            .plan
            .memos
            .iter()
            .filter(|memo| memo.verb == verb)
            .count()
    };
    let parts = [
        (number(Verb::Add), "added"),
        (number(Verb::Remove), "removed"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();

    (!parts.is_empty()).then(|| StyledLine::plain(&format!(" memos: {}", parts.join(", "))))
}

/// Counts by kind, such as `CREATE 1 file`.
fn action_counts(proposal: &ReviewRequest<'_>) -> Vec<String> {
    let counted: Vec<String> = group_by_kind(proposal)
        .into_iter()
        .map(
            |ActionGroup {
                 row, number, how, ..
             }| format!("{} {number}{how}", row.name),
        )
        .collect();
    if counted.is_empty() {
        vec!["no actions".to_owned()]
    } else {
        counted
    }
}

/// Returns the proposal as one object. Nothing is shortened or escaped for display.
pub fn proposal_json(proposal: &ReviewRequest<'_>) -> Value {
    let plan = proposal.plan;
    let damage = plan_damage(plan, proposal.simulation);
    let memo = |verb| match verb {
        Verb::Add => "add",
        Verb::Remove => "remove",
    };
    json!({
        "session": proposal.session,
        "turn": proposal.turn,
        "title": plan.title,
        "status": plan.field("Status"),
        "agent": plan.field("Agent"),
        "repair": proposal.repair.level,
        "confinement": (proposal.confinement)(),
        "agent_commands": proposal.transcript.map(|_| commands_json(proposal.agent_commands)),
        "memos": plan.memos.iter().map(|m| json!({ "verb": memo(m.verb), "text": m.text, "comment": m.comment })).collect::<Vec<_>>(),
        "actions": (0..plan.actions.len()).map(|index| action_json(proposal, index)).collect::<Vec<_>>(),
        "spellings": proposal.repair.notes.iter().filter(|n| n.spelling).collect::<Vec<_>>(),
        "comments": proposal.comments.iter().map(comment_json).collect::<Vec<_>>(),
        "damage": damage.iter().map(|found| found.damage.to_file(&found.path)).collect::<Vec<_>>(),
        "risks": risk::risks(proposal, &damage).iter().map(|r| json!({ "action": r.action, "text": r.text })).collect::<Vec<_>>(),
    })
}

fn comment_json(followed: &FollowedComment) -> Value {
    let comment = &followed.comment;
    json!({
        "path": comment.path,
        "lines": [comment.first, comment.last],
        "text": comment.text,
        "status": followed.status.word(),
        "line": followed.line,
    })
}

fn commands_json(commands: CommandCounts) -> Value {
    json!({ "ran": commands.ran, "failed": commands.failed, "is_minimum": commands.is_minimum })
}

fn action_json(proposal: &ReviewRequest<'_>, index: usize) -> Value {
    let kind = &proposal.plan.actions[index].kind;
    let mut value = json!({ "index": index, "kind": kind.name(), "target": kind.target(), "description": proposal.plan.actions[index].description() });
    if kind.path().is_some() {
        let counts = changed(proposal, index);
        value["added"] = counts.added.into();
        value["removed"] = counts.removed.into();
    }
    for (key, contents) in kind.json() {
        value[key] = contents;
    }
    value
}

struct ActionGroup {
    row: &'static ActionRow,
    /// Count with unit, such as `2 files`.
    number: String,
    /// The confinement of commands, in parentheses.
    how: String,
    /// Indices in the plan.
    actions: Vec<usize>,
    /// Without duplicates.
    targets: Vec<String>,
}

/// Groups all actions by kind. File changes and commands come first.
fn group_by_kind(proposal: &ReviewRequest<'_>) -> Vec<ActionGroup> {
    let plan = proposal.plan;
    let mut rows = ROWS.to_vec();
    rows.sort_by_key(|row| row.group);
    let of_row = |row: &'static ActionRow| {
        let actions = (0..plan.actions.len()).filter(|&at| plan.actions[at].kind.row() == row);
        action_group(proposal, actions.collect())
    };

    rows.into_iter().filter_map(of_row).collect()
}

/// Groups consecutive actions of the same kind, in plan order.
fn group_in_order(proposal: &ReviewRequest<'_>) -> Vec<ActionGroup> {
    let actions: Vec<usize> = (0..proposal.plan.actions.len()).collect();
    let row = |at: usize| proposal.plan.actions[at].kind.row();
    let runs = actions.chunk_by(|&one, &next| row(one) == row(next));
    let mut groups: Vec<ActionGroup> = runs
        .filter_map(|run| action_group(proposal, run.to_vec()))
        .collect();

    // Mention the confinement only once.
    let commands = groups.iter_mut().filter(|group| !group.how.is_empty());
    commands.skip(1).for_each(|group| group.how.clear());
    groups
}

/// `None` if there are no actions.
fn action_group(proposal: &ReviewRequest<'_>, actions: Vec<usize>) -> Option<ActionGroup> {
    let plan = proposal.plan;
    let row = plan.actions[*actions.first()?].kind.row();
    let number = count_actions(plan, row, &actions);
    let (one, many) = row.unit;
    let mut targets: Vec<String> = Vec::new();
    for at in &actions {
        let target = plan.actions[*at].kind.target();
        if !targets.contains(&target) {
            targets.push(target);
        }
    }

    Some(ActionGroup {
        row,
        number: format!("{number} {}", if number == 1 { one } else { many }),
        how: match row.group {
            SummaryGroup::Commands => format!(" ({})", confinement(proposal)),
            _ => String::new(),
        },
        actions,
        targets,
    })
}

/// Returns how commands are confined. A command with the network of its own says so below.
fn confinement(proposal: &ReviewRequest<'_>) -> String {
    let confinement = (proposal.confinement)();
    let mut commands = proposal
        .plan
        .actions
        .iter()
        .filter_map(|action| action.kind.command());
    match commands.any(|execute| execute.network) {
        true => confinement.replace(", no network", ""),
        false => confinement,
    }
}

/// Two actions on the same file count once.
fn count_actions(plan: &Plan, row: &ActionRow, actions: &[usize]) -> usize {
    if !row.counts_targets {
        return actions.len();
    }
    let targets = actions.iter().map(|&at| plan.actions[at].kind.target());
    targets.collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests;
