//! Parses a plan and reports all its mistakes together.
//!
//! Never fails and never panics: whatever cannot be parsed is omitted and reported. The text is
//! parsed after repair, and strictly: anything the format has no place for is a mistake, never
//! skipped silently. Comrak provides the structure (`text::markdown`); a separate scan of the lines
//! finds headings that Markdown parses as something else. Rules P1-P24 are those of
//! `docs/formats/plan.md`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memmem;

use super::action::body::{Body, block_text};
use super::action::border::{self, Border, border};
use super::action::{Action, ActionRow, foreign};
use super::diagnostic::{Diagnostic, in_order, quote};
use super::document::Plan;
use super::field::Field;
use super::line::field_item::{self, Own};
use super::line::{self, Section, looks_like_border};
use super::memo::{self, MemoChange};

use crate::text::fence::{FenceTracker, split_lines};
use crate::text::markdown::{
    self, BlockKind, Document, Lines, MAX_NESTING, MarkdownBlock, heading_text,
};

/// Largest plan that is parsed, in bytes (P22).
pub const MAX_PLAN: usize = 16 << 20;

/// Limit of actions in a plan (P22).
pub const MAX_ACTIONS: usize = 2000;

/// Diagnostic for an action above or below the action plan.
const OUTSIDE: &str = " is outside of the action plan";

/// Parses a plan. The plan contains everything that could be parsed, even with diagnostics.
pub fn parse(text: &str) -> (Plan, Vec<Diagnostic>) {
    let mut plan = Plan::default();
    if let Some(limit) = over_limit(text) {
        return (plan, vec![limit]);
    }

    let text = normal(text);
    if text.trim().is_empty() {
        return (
            plan,
            vec![Diagnostic::new(1, "the plan is empty").hint("start with `# Title`")],
        );
    }

    let document = markdown::read(&text);
    let lines = Lines::new(&text);
    let limit = over_structure_limit(&document);
    let regions = split_regions(&lines, &document.blocks);
    if let Some(wrong) = limit.or(too_many_actions(count_actions(&regions))) {
        return (plan, vec![wrong]);
    }

    let is_known = |region: &Region| !matches!(region.border, None | Some(Border::Unknown));
    // A reply without any structure of a plan is probably meant for another tool.
    if !regions.iter().any(is_known)
        && let Some(wrong) = foreign::reply(&text)
    {
        return (plan, vec![wrong]);
    }
    let mut reader = Reader {
        lines: &lines,
        blocks: &document.blocks,
        diagnostics: Vec::new(),
        missing: Vec::new(),
        labels: Vec::new(),
        section: None,
    };

    for region in &regions {
        reader.region(region, &mut plan);
    }

    reader.sections(&regions);
    reader.diagnostics.extend(first_nul(&text));
    let mut causes = unclosed_fences(&lines, &document.blocks);
    causes.extend(hidden_headings(&lines, &document.blocks));

    // Other mistakes on such a line are consequences.
    let at: BTreeSet<usize> = causes.iter().map(|wrong| wrong.line).collect();
    reader.diagnostics.retain(|wrong| !at.contains(&wrong.line));
    reader.diagnostics.extend(causes);
    (plan, reader.finish())
}

/// Returns whether a text has a heading that only a plan has: that of an action or of a required
/// section.
pub fn has_border_of_plan(text: &str) -> bool {
    let text = normal(text);
    let document = markdown::read(&text);
    split_regions(&Lines::new(&text), &document.blocks)
        .iter()
        .any(|region| match region.border {
            Some(Border::Action(_)) => true,
            Some(Border::Section(section)) => section != Section::Memos,
            Some(Border::Unknown) => line::action(&region.text).is_some(),
            Some(Border::Title) | None => false,
        })
}

/// Removes a byte order mark, and converts line endings to LF if all are CRLF, or all CR (P2).
pub fn normal(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The last pair can be cut.
    let whole = text.strip_suffix('\r').unwrap_or(text);
    let pairs = whole.matches("\r\n").count();
    if pairs > 0 && pairs == whole.matches('\n').count() && pairs == whole.matches('\r').count() {
        return Cow::Owned(whole.replace("\r\n", "\n"));
    }

    if !text.contains('\n') && text.contains('\r') {
        return Cow::Owned(text.replace('\r', "\n"));
    }
    Cow::Borrowed(text)
}

/// Parser state, advanced region by region.
struct Reader<'a> {
    lines: &'a Lines<'a>,
    blocks: &'a [MarkdownBlock],
    diagnostics: Vec<Diagnostic>,
    /// Missing parts of the plan as a whole.
    missing: Vec<Diagnostic>,
    /// Labels of the actions, with their line ranges.
    labels: Vec<(Range<usize>, String)>,
    section: Option<Section>,
}

impl<'a> Reader<'a> {
    fn region(&mut self, region: &Region, plan: &mut Plan) {
        match region.border {
            None => self.before_title(region),
            Some(Border::Title) if region.first_title => {
                plan.title = region.text.clone();
                plan.fields = self.header(region);
            }
            Some(Border::Title) => self.report(
                region.line,
                "a second level 1 heading",
                "a plan has one title; use deeper headings in messages",
            ),
            Some(Border::Section(section)) => {
                self.enter(region.line, section);
                match section {
                    Section::Rationale => plan.rationale = self.rationale(region),
                    Section::Memos => plan.memos = self.memos(region),
                    Section::Plan => {
                        for block in self.solid_blocks(region) {
                            self.unexpected(block.first, "expected an action's heading");
                        }
                    }
                }
            }
            Some(Border::Action(row)) => self.action(row, region, plan),
            Some(Border::Unknown) => self.unknown(region),
        }
    }

    fn action(&mut self, row: &'static ActionRow, region: &Region, plan: &mut Plan) {
        let name = row.name;
        if self.section != Some(Section::Plan) {
            self.report(
                region.line,
                format!("{name}{OUTSIDE}"),
                "put all actions under `## Action Plan`",
            );
        }

        let blocks = &self.blocks[region.blocks.clone()];
        let mut body = Body::new(self.lines, row, region.line, region.end, blocks);
        let kind = (row.read)(&mut body);
        let label = kind.as_ref().map_or_else(
            || body.label(),
            |kind| {
                format!("{name} {}", quote(&kind.target()))
                    .trim_end()
                    .to_owned()
            },
        );

        self.labels.push((region.line..region.end, label));
        self.diagnostics.append(&mut body.diagnostics);
        plan.actions.extend(kind.map(|kind| Action {
            line: region.line,
            fields: body.fields,
            kind,
        }));
    }

    fn unknown(&mut self, region: &Region) {
        let text = quote(&line::bare(&region.text).replace('`', ""));
        let action = line::action(&region.text).map(|row| row.name);
        match (action, self.section) {
            (Some(name), _) => {
                let hint = format!("write ### `{name}`");
                self.report(
                    region.line,
                    format!(
                        "{name} is a level {} heading; actions are level 3",
                        region.level
                    ),
                    hint,
                );
            }
            (None, Some(Section::Plan)) if region.level == 3 => {
                let hint = match text.split([' ', ':']).next().and_then(line::action) {
                    Some(row) => {
                        format!("write ### `{}` alone; the rest belongs below it", row.name)
                    }
                    None => format!("the actions are {}", line::allowed()),
                };
                self.report(region.line, format!("unknown action `{text}`"), hint);
                self.labels.push((region.line..region.end, text));
            }
            _ => {
                let hint = "a plan has `## Rationale`, `## Memos` if needed, and `## Action Plan`; put other headings into a code block";
                self.report(
                    region.line,
                    format!("unknown level {} heading \"{text}\"", region.level),
                    hint,
                );
            }
        }
    }

    fn before_title(&mut self, region: &Region) {
        if let Some(block) = self.solid_blocks(region).next() {
            let text = quote(self.lines.get(block.first));
            self.report(
                block.first,
                format!("\"{text}\" is before the title"),
                "start the plan with `# Title`",
            );
        }
    }

    /// Reads the list below the title (P4, P5).
    fn header(&mut self, region: &Region) -> Vec<Field> {
        if region.text.trim().is_empty() {
            let hint = "write `# What this plan does`";
            self.report(region.line, "the title is empty", hint);
        }

        let mut fields = Vec::new();
        for block in self.solid_blocks(region) {
            let BlockKind::List {
                ordered: false,
                items,
            } = &block.node
            else {
                self.unexpected(block.first, "expected `- **Key:** value` or a section");
                continue;
            };
            for item in items {
                match field_item::read(self.lines, item, Own::All) {
                    Some(entry) => fields.push(entry.field),
                    None => self.unexpected(item.first, "expected `- **Key:** value`"),
                }
            }
        }

        fields
    }

    /// Reads the rationale (P6).
    fn rationale(&mut self, region: &Region) -> String {
        let Some((_, text)) = self.one_block(region) else {
            return String::new();
        };
        if text.trim().is_empty() {
            let hint = "say in the block why this plan is right";
            self.report(region.line, "the rationale is empty", hint);
        }

        text
    }

    /// Reads the memos. An empty section changes nothing (P7).
    fn memos(&mut self, region: &Region) -> Vec<MemoChange> {
        if self.solid_blocks(region).next().is_none() {
            return Vec::new();
        }

        let Some((line, text)) = self.one_block(region) else {
            return Vec::new();
        };
        let (changes, mut wrong) = memo::parse_section(&text, line + 1);
        self.diagnostics.append(&mut wrong);
        changes
    }

    fn one_block(&mut self, region: &Region) -> Option<(usize, String)> {
        let name = region.text.trim();
        let mut first = None;
        for block in self.solid_blocks(region) {
            match block.fenced() {
                Some(code) if first.is_none() => {
                    let text = block_text(self.lines, code)
                        .unwrap_or_else(|| self.lines.span(code.line_range.clone()).to_owned());
                    first = Some((block.first, text));
                }
                Some(_) => {
                    let message = format!("`{name}` has more than one code block");
                    let hint = "put all of it into one block whose fence is longer than any run of backticks inside";
                    self.report(block.first, message, hint);
                }
                None => self.unexpected(block.first, "expected one code block"),
            }
        }

        if first.is_none() {
            let message = format!("`{name}` has no code block");
            self.report(
                region.line,
                message,
                "put its text into one fenced code block",
            );
        }

        first
    }

    fn solid_blocks(&self, region: &Region) -> impl Iterator<Item = &'a MarkdownBlock> + use<'a> {
        let blocks = self.blocks[region.blocks.clone()].iter();
        blocks.filter(|block| block.node != BlockKind::Rule)
    }

    fn unexpected(&mut self, line: usize, expected: &str) {
        let message = format!("unexpected text \"{}\"", quote(self.lines.get(line)));
        self.report(line, message, expected);
    }

    fn enter(&mut self, line: usize, section: Section) {
        let name = section.name();
        match self.section {
            Some(before) if before == section => self.report(
                line,
                format!("a second section `{name}`"),
                "put both into one",
            ),
            Some(before) if before > section => {
                let hint = "the order is Rationale, Memos, Action Plan";
                self.report(line, format!("`{name}` is after `{}`", before.name()), hint);
            }
            _ => {}
        }

        self.section = Some(section);
    }

    fn sections(&mut self, regions: &[Region]) {
        let has = |border: Border| regions.iter().any(|r| r.border == Some(border));
        if !has(Border::Title) {
            // Without a title, everything is "before the title".
            self.diagnostics
                .retain(|wrong| !wrong.message.ends_with("is before the title"));
            self.report_missing(
                1,
                "the plan has no level 1 heading",
                "start the plan with `# Title`",
            );
        }

        let plan_line = regions
            .iter()
            .find(|r| r.border == Some(Border::Section(Section::Plan)))
            .map(|r| r.line);
        if !has(Border::Section(Section::Rationale)) {
            let hint = "add `## Rationale` with one code block before `## Action Plan`";
            self.report_missing(
                plan_line.unwrap_or(1),
                "the plan has no `## Rationale`",
                hint,
            );
        }

        let first_action = regions
            .iter()
            .find(|r| matches!(r.border, Some(Border::Action(_))));
        let actions = first_action.is_some() || has(Border::Unknown);
        let none = "the plan has no `## Action Plan`";

        match (plan_line, first_action) {
            (None, Some(first)) => {
                // Without an action plan, every action is outside of it.
                self.diagnostics
                    .retain(|wrong| !wrong.message.ends_with(OUTSIDE));
                self.report_missing(first.line, none, "write it above the first action");
            }
            (None, None) => self.report_missing(
                self.lines.len(),
                none,
                "add `## Action Plan` and at least one action",
            ),
            (Some(line), _) if !actions => self.report_missing(
                line,
                "the action plan is empty",
                "add at least one action, as ### `READ`",
            ),
            (Some(_), _) => {}
        }
    }

    /// Records a missing part of the plan as a whole, which belongs to no action.
    fn report_missing(&mut self, line: usize, message: &str, hint: &str) {
        self.missing.push(Diagnostic::new(line, message).hint(hint));
    }

    fn report(&mut self, line: usize, message: impl Into<String>, hint: impl Into<String>) {
        self.diagnostics
            .push(Diagnostic::new(line, message).hint(hint));
    }

    fn finish(self) -> Vec<Diagnostic> {
        let mut diagnostics = self.diagnostics;
        for wrong in &mut diagnostics {
            // Regions, and therefore labels, are in line order.
            let above = self
                .labels
                .partition_point(|(lines, _)| lines.start <= wrong.line);
            let label = above
                .checked_sub(1)
                .map(|at| &self.labels[at])
                .filter(|(lines, _)| lines.contains(&wrong.line));
            wrong.action = label.map(|(_, label)| label.clone()).unwrap_or_default();
        }

        diagnostics.extend(self.missing);
        in_order(diagnostics)
    }
}

/// Part of a plan between two borders.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    /// The border that opens it; `None` before the first one.
    border: Option<Border>,
    text: String,
    /// Level of the heading; 0 before the first border.
    level: u8,
    /// Line of the heading, from 1.
    line: usize,
    /// The line after its last.
    end: usize,
    /// Indexes of its blocks, without the heading.
    blocks: Range<usize>,
    /// Set for the first region with a title.
    first_title: bool,
}

/// Splits a plan. Inside a message only the format's own headings are borders; elsewhere, any
/// heading down to level 3.
fn split_regions(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> Vec<Region> {
    let start = Region {
        border: None,
        text: String::new(),
        level: 0,
        line: 1,
        end: 1,
        blocks: 0..0,
        first_title: false,
    };
    let mut regions = vec![start];
    for (index, block) in blocks.iter().enumerate() {
        let open = regions.last_mut().expect("there is one from the start");
        let BlockKind::Heading {
            level,
            setext: false,
            text,
        } = &block.node
        else {
            open.blocks.end = index + 1;
            continue;
        };

        let unknown = (*level <= 3 && !is_message_region(open)).then_some(Border::Unknown);
        let Some(kind) = border(lines, blocks, index).or(unknown) else {
            open.blocks.end = index + 1;
            continue;
        };

        open.end = block.first;
        let first_title =
            kind == Border::Title && regions.iter().all(|r| r.border != Some(Border::Title));
        let (text, level) = (text.clone(), *level);
        regions.push(Region {
            border: Some(kind),
            text,
            level,
            line: block.first,
            end: 0,
            blocks: index + 1..index + 1,
            first_title,
        });
    }

    regions.last_mut().expect("there is one from the start").end = lines.len() + 1;
    regions
}

fn is_message_region(region: &Region) -> bool {
    matches!(region.border, Some(Border::Action(row)) if row.is_message())
}

/// Reports fenced blocks that are never closed, and the structure they swallow (P19).
fn unclosed_fences(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> Vec<Diagnostic> {
    let open = markdown::fenced(blocks)
        .into_iter()
        .filter(|(_, code)| !code.is_closed);
    open.map(|(range, code)| {
        let swallowed = code
            .line_range
            .clone()
            .find(|&line| looks_like_border(lines.get(line)));
        let tail = swallowed
            .map(|line| {
                format!(
                    "; it swallows \"{}\" in line {line}",
                    quote(lines.get(line))
                )
            })
            .unwrap_or_default();
        let message = format!("the code block that opens here is never closed{tail}");

        let fence: String = code.fence().chars().take(80).collect();
        Diagnostic::new(range.start, message).hint(format!("close it with {fence} alone on a line"))
    })
    .collect()
}

/// Reports lines that look like the heading of an action or a section but that Markdown parses as
/// something else (P18).
fn hidden_headings(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> Vec<Diagnostic> {
    let around = |line: usize| blocks[..blocks.partition_point(|block| block.first <= line)].last();
    let wrong = |line: usize| {
        let container = match around(line).map(|block| &block.node) {
            Some(BlockKind::Html) => "HTML",
            Some(BlockKind::List { .. }) => "a list",
            Some(BlockKind::Code(_)) => "indented code",
            Some(BlockKind::Paragraph) => "text",
            _ => "something else",
        };
        let message = format!(
            "\"{}\" looks like a heading, but Markdown reads it as part of {container}",
            quote(lines.get(line))
        );
        let hint = "start it in the first column, with one space after the `#` and an empty line above; or put it into a code block";

        Diagnostic::new(line, message).hint(hint)
    };
    border::hidden(lines, blocks)
        .into_iter()
        .map(wrong)
        .collect()
}

/// Reports the first NUL (P21).
fn first_nul(text: &str) -> Option<Diagnostic> {
    let at = text.find('\0')?;
    let line =
        Lines::new(&text[..at]).len().max(1) + usize::from(text[..at].ends_with(['\n', '\r']));
    Some(
        Diagnostic::new(line, "the plan has a NUL character")
            .hint("make binary files with EXECUTE, as with `base64 -d`"),
    )
}

// Size limits of a plan (P22), each reported as a single mistake.
//
// Size and number of actions are checked before parsing, in one pass over the lines.

/// Returns a diagnostic if a text is too large or has too many actions.
pub fn over_limit(text: &str) -> Option<Diagnostic> {
    if text.len() > MAX_PLAN {
        let message = format!(
            "the plan has {} bytes; at most {MAX_PLAN} are read",
            text.len()
        );
        return Some(Diagnostic::new(1, message).hint("write a shorter plan, over several turns"));
    }

    // Most plans have fewer `###` than the limit, so counting them avoids the scan by line.
    let marks = memmem::find_iter(text.as_bytes(), "###")
        .take(MAX_ACTIONS + 1)
        .count();
    if marks > MAX_ACTIONS {
        too_many_actions(count_action_headings(text))
    } else {
        None
    }
}

fn count_actions(regions: &[Region]) -> usize {
    let is_action = |region: &&Region| matches!(region.border, Some(Border::Action(_)));
    regions.iter().filter(is_action).count()
}

fn too_many_actions(number: usize) -> Option<Diagnostic> {
    (number > MAX_ACTIONS).then(|| {
        Diagnostic::new(1, format!("the plan has over {MAX_ACTIONS} actions"))
            .hint("write several plans")
    })
}

/// Returns a diagnostic if a document is nested too deeply or took too long to parse.
fn over_structure_limit(document: &Document) -> Option<Diagnostic> {
    if document.abandoned {
        return Some(
            Diagnostic::new(1, "reading the plan's Markdown took too long")
                .hint("write plain blocks, nested less"),
        );
    }

    (document.depth > MAX_NESTING).then(|| {
        let message = format!(
            "lists or quotations are nested {} deep; at most {MAX_NESTING} are read",
            document.depth
        );
        Diagnostic::new(1, message).hint("put such text into a code block")
    })
}

/// Counts action headings outside fences, judging by single lines. Stops beyond the limit.
fn count_action_headings(text: &str) -> usize {
    let mut fences = FenceTracker::default();
    let outside = split_lines(text).filter(|line| !fences.is_code(line.text));
    let headings =
        outside.filter(|line| line.text.starts_with("###") && is_action_heading(line.text));
    headings.take(MAX_ACTIONS + 1).count()
}

fn is_action_heading(line: &str) -> bool {
    looks_like_border(line) && line::action(heading_text(line)).is_some()
}

#[cfg(test)]
mod tests;
