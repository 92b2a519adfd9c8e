//! Respells title, header and sections: recognizes them, adds missing headings, moves text into
//! blocks.

use super::edits::LineEdits;
use super::passage::{Passage, PassageRole};
use crate::plan::line::condition::is_aside;
use crate::plan::line::field_item::{canonical, has_weight};
use crate::plan::line::prose::says_nothing;
use crate::plan::line::{self, Section, heading_of, is_fence, key, name, unlisted};
use crate::text::fence::fence_for;
use crate::text::has_phrase;
use crate::text::markdown::{BlockKind, Lines, MarkdownBlock, fenced};

/// Sections after the actions that have no effect.
const CLOSING: &str = "\
    summary, note, notes, next steps, next step, overview, conclusion, explanation, context, \
    expected outcome, expected result, expected results, analysis, remarks";
/// Rationale of a plan without one.
const NO_RATIONALE: &str = "The plan gives none.";

/// Recognizes the passages that are parts of the format, and adds missing headings.
pub(super) fn name_all(
    blocks: &[MarkdownBlock],
    passages: &mut [Passage],
    edits: &mut LineEdits<'_>,
) {
    let lines = edits.lines;
    let Some(first) = passages.iter().position(Passage::is_action) else {
        return;
    };
    title(passages, first, edits);
    memos(blocks, &mut passages[..first], edits);
    let (_, before) = passages.split_at_mut(1);
    let before = &mut before[..first - 1];
    let planned = before.iter().any(|passage| passage.is(Section::Plan));
    // A fence that is never closed can hide them.
    let hides = |passage: &Passage| {
        let own = &blocks[passage.blocks.clone()];
        in_code(own, |line| {
            let text = lines.get(line);
            let next = || {
                let mut below = (line + 1..=lines.len()).map(|line| lines.get(line));
                below
                    .find(|text| !text.trim().is_empty())
                    .unwrap_or_default()
            };
            is_plan(text) || (heading_of(text).is_some() && name::action(text, next()).is_some())
        })
    };
    if !planned && before.iter().any(hides) {
        return;
    }

    if !planned && let Some(last) = before.last_mut() {
        let own = &blocks[last.blocks.clone()];
        let title = heading_of(lines.get(last.line)).map_or("", |(_, text)| text);
        let unknown = matches!(last.role, PassageRole::Unknown(..=2));

        // An example or a rejected alternative is not a plan, whatever its heading.
        if unknown && is_aside(title) {
            return;
        }

        if unknown && is_words(lines, own) {
            rename(last, Section::Plan, edits);
        }
    }

    rationale(before, edits);
    respell_headings(passages, edits);
    add_missing(passages, first, edits);
}

/// Finds the title: a heading of another level, an underlined one, or a line such as `Title: ...`.
fn title(passages: &mut [Passage], first: usize, edits: &mut LineEdits<'_>) {
    let lines = edits.lines;
    if let Some(passage) = passages
        .iter()
        .find(|passage| passage.role == PassageRole::Title)
    {
        let line = passage.line;
        if !lines.get(line).trim_start().starts_with('#') {
            edits.replace(line, format!("# {}", lines.get(line).trim()));
            edits.remove(line + 1);
            edits.add_note(line, "read the underlined line as the title");
        }
        return;
    }

    if let Some(passage) = passages[1..first]
        .first_mut()
        .filter(|passage| matches!(passage.role, PassageRole::Unknown(_)))
    {
        let text = heading_of(lines.get(passage.line)).map_or("", |(_, text)| text);
        passage.role = PassageRole::Title;
        edits.replace(passage.line, format!("# {text}"));
        edits.add_note(passage.line, "read the first heading as the title");
        return;
    }

    let at = (1..passages[1].line).find(|&line| !lines.get(line).trim().is_empty());
    let title = at.and_then(|line| Some((line, title_of(lines.get(line))?)));
    if let Some((line, title)) = title {
        edits.replace(line, format!("# {title}"));
        edits.insert(line + 1, "");
        edits.add_note(line, "read the first line as the title");
        return;
    }

    if let PassageRole::Action(action) = &passages[first].role {
        let at = at.unwrap_or(1).min(passages[1].line);
        edits.insert(at, format!("# {}", action.row.name));
        edits.insert(at, "");
        edits.add_note(
            1,
            "the plan has no title; it is called after its first action",
        );
    }
}

/// Returns the title in a line: `#Title`, or `Title: ...`.
fn title_of(line: &str) -> Option<&str> {
    if let Some((1, text)) = heading_of(line) {
        return (!text.is_empty()).then_some(text);
    }
    let (_, title) = key::split(line).filter(|(key, _)| key.eq_ignore_ascii_case("title"))?;
    (!title.is_empty()).then_some(title)
}

fn memos(blocks: &[MarkdownBlock], passages: &mut [Passage], edits: &mut LineEdits<'_>) {
    let lines = edits.lines;
    if passages.iter().any(|passage| passage.is(Section::Memos)) {
        return;
    }

    let matching = passages.iter_mut().find(|passage| {
        let own = &blocks[passage.blocks.clone()];
        let solid: Vec<&str> = own
            .iter()
            .flat_map(|block| block.lines())
            .map(|line| lines.get(line).trim())
            .filter(|text| !text.is_empty() && !is_fence(text))
            .collect();
        let is_memo = |text: &&str| memo(text).is_some();

        matches!(passage.role, PassageRole::Unknown(_))
            && !solid.is_empty()
            && solid.iter().all(is_memo)
    });
    if let Some(passage) = matching {
        rename(passage, Section::Memos, edits);
    }
}

/// Merges unknown sections above the actions into the rationale.
fn rationale(passages: &mut [Passage], edits: &mut LineEdits<'_>) {
    let unknown = |passage: &Passage| matches!(passage.role, PassageRole::Unknown(_));
    if !passages
        .iter()
        .any(|passage| passage.is(Section::Rationale))
        && let Some(passage) = passages.iter_mut().find(|passage| unknown(passage))
    {
        rename(passage, Section::Rationale, edits);
    }

    let mut at = passages
        .iter()
        .position(|passage| passage.is(Section::Rationale))
        .unwrap_or(passages.len());
    let own = at;
    while passages.get(at + 1).is_some_and(unknown) {
        at += 1;
        passages[own].end = passages[at].end;
        // Headings inside the rationale's block start nothing.
        passages[own].blocks.end = passages[at].blocks.end;
        passages[at].role = PassageRole::Start;
        passages[at].blocks = 0..0;
    }
}

fn rename(passage: &mut Passage, section: Section, edits: &mut LineEdits<'_>) {
    let lines = edits.lines;
    let name = section.name();
    edits.replace(passage.line, format!("## {name}"));
    let original = lines.get(passage.line).trim();
    edits.add_note(passage.line, format!("read `{original}` as `## {name}`"));
    passage.role = PassageRole::Section(section);
}

fn respell_headings(passages: &mut [Passage], edits: &mut LineEdits<'_>) {
    let lines = edits.lines;
    for passage in passages {
        let PassageRole::Section(section) = passage.role else {
            continue;
        };
        let line = lines.get(passage.line);
        let (level, text) = heading_of(line).unwrap_or_default();
        let spaced = line.contains("## ");
        let is_exact = level == 2 && spaced && line::section(text) == Some(section);
        if !is_exact && name::section(line).is_some_and(|(other, _)| other == section) {
            rename(passage, section, edits);
        }
    }
}

/// Adds missing headings above the first action.
fn add_missing(passages: &[Passage], first: usize, edits: &mut LineEdits<'_>) {
    let before = &passages[..first];
    let of = |section| before.iter().find(|passage| passage.is(section));
    let plan = of(Section::Plan).map(|passage| passage.line);
    let memos = of(Section::Memos).map(|passage| passage.line);
    let later = passages[first..]
        .iter()
        .any(|passage| matches!(passage.role, PassageRole::Section(_)));

    if later {
        return;
    }

    let line = passages[first].line;
    if of(Section::Rationale).is_none() {
        let at = memos.or(plan).unwrap_or(line);
        edits.insert(at, "## Rationale");
        for text in ["````text", NO_RATIONALE, "````", ""] {
            edits.insert(at, text);
        }
        edits.add_note(at, "the plan gives no rationale");
    }

    if plan.is_none() {
        edits.insert(line, "## Action Plan");
        edits.insert(line, "");
        edits.add_note(line, "put `## Action Plan` above the first action");
    }
}

/// Respells the text below a heading other than an action's.
pub(super) fn respell(passage: &Passage, blocks: &[MarkdownBlock], edits: &mut LineEdits<'_>) {
    match passage.role {
        PassageRole::Section(Section::Rationale) => {
            put_in_block(passage, blocks, edits);
        }
        PassageRole::Section(Section::Memos) => respell_memos(passage, blocks, edits),
        PassageRole::Section(Section::Plan) => leave_out_words(blocks, edits),
        PassageRole::Title | PassageRole::Start => header(blocks, edits),
        PassageRole::Unknown(level) => closing(passage, level, blocks, edits),
        PassageRole::Action(_) => {}
    }
}

fn in_code(blocks: &[MarkdownBlock], is_sought: impl Fn(usize) -> bool) -> bool {
    let code = fenced(blocks).into_iter();
    let mut numbers = code.flat_map(|(_, code)| code.line_range.clone());
    numbers.any(is_sought)
}

fn is_plan(line: &str) -> bool {
    matches!(name::section(line), Some((Section::Plan, _)))
}

/// Moves the rationale into a code block.
fn put_in_block(passage: &Passage, blocks: &[MarkdownBlock], edits: &mut LineEdits<'_>) {
    let lines = edits.lines;
    let solid: Vec<&MarkdownBlock> = blocks
        .iter()
        .filter(|block| block.node != BlockKind::Rule)
        .collect();
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
        for text in ["````text", NO_RATIONALE, "````"] {
            edits.insert(passage.line + 1, text);
        }
        edits.add_note(passage.line, "the plan gives no rationale");
        return;
    };

    let is_block = matches!(solid[..], [only] if only.fenced().is_some());
    if is_block {
        return;
    }
    let fence = fence_for(lines.span(first.first..last.last + 1), 4);
    edits.insert(first.first, format!("{fence}text"));
    edits.insert(last.last + 1, fence);

    edits.add_note(first.first, "put the rationale into a code block");
}

/// Moves memos into a code block, without bullets.
fn respell_memos(passage: &Passage, blocks: &[MarkdownBlock], edits: &mut LineEdits<'_>) {
    let lines = edits.lines;
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
        return;
    };
    let code = match blocks {
        [only] => only.fenced(),
        _ => None,
    };

    let range = code.map_or(first.first..last.last + 1, |code| code.line_range.clone());
    let solid: Vec<usize> = range
        .filter(|&line| !lines.get(line).trim().is_empty())
        .collect();
    let texts: Vec<&str> = solid.iter().map(|&line| lines.get(line).trim()).collect();

    // A line with a memo's mark is a memo, even if its text is `na`.
    let is_marked = |text: &&str| text.starts_with("[+]") || text.starts_with("[-]");
    if !texts.iter().any(is_marked) && says_nothing(&texts) {
        edits.leave_out(first.first..=last.last, "the memos");
        return;
    }

    let Some(memos) = texts
        .iter()
        .map(|text| memo(text))
        .collect::<Option<Vec<String>>>()
    else {
        return;
    };
    for (line, memo) in solid.iter().zip(&memos) {
        if lines.get(*line).trim() != memo {
            edits.replace(*line, memo.as_str());
            edits.add_note(*line, "read the item as a memo");
        }
    }

    if code.is_none() {
        edits.insert(first.first, "````");
        edits.insert(last.last + 1, "````");
        edits.add_note(passage.line, "put the memos into a code block");
    }
}

/// Returns a line as a memo, without its bullet and the marks around `[+]`.
fn memo(line: &str) -> Option<String> {
    let text = unlisted(line).trim_start_matches(['*', '`', '_']);
    let sign = text.get(..3).filter(|sign| ["[+]", "[-]"].contains(sign))?;
    let body = text[3..].trim_start_matches(['*', '`', '_', ':']).trim();
    (!body.is_empty()).then(|| format!("{sign} {}", body.trim_end_matches('`')))
}

/// Removes sentences between a heading and the first action.
fn leave_out_words(blocks: &[MarkdownBlock], edits: &mut LineEdits<'_>) {
    let lines = edits.lines;
    let paragraphs = blocks
        .iter()
        .filter(|block| block.node == BlockKind::Paragraph);
    for block in paragraphs {
        edits.leave_out_words(block.lines(), &lines.texts(block.lines()));
    }
}

/// Writes the fields below the title as items, and removes sentences.
fn header(blocks: &[MarkdownBlock], edits: &mut LineEdits<'_>) {
    let lines = edits.lines;
    for block in blocks
        .iter()
        .filter(|block| block.node == BlockKind::Paragraph)
    {
        let range = block.lines();
        let bold = |line: usize| lines.get(line).trim().starts_with("**");
        let keyed = |line: usize| {
            let text = lines.get(line);
            key::field(text, None).is_some() || (bold(line) && key::split(text).is_some())
        };
        if title_of(lines.get(block.first)).is_some() {
            continue;
        }

        if !range.clone().all(keyed) {
            leave_out_words(std::slice::from_ref(block), edits);
            continue;
        }

        for line in range {
            let (key, value) = key::split(lines.get(line)).unwrap_or_default();
            let value = value.trim_end_matches('\\').trim_end();
            edits.replace(line, format!("- **{key}:** {value}"));
            edits.add_note(line, format!("read the line as the field `{key}`"));
        }
    }
}

/// Removes a section without effect after the actions.
fn closing(passage: &Passage, level: u8, blocks: &[MarkdownBlock], edits: &mut LineEdits<'_>) {
    let lines = edits.lines;
    let text = heading_of(lines.get(passage.line)).map_or("", |(_, text)| text);
    let title = name::plain(text).to_lowercase();
    let title = title.trim_matches(|c: char| !c.is_alphanumeric());
    if level == 2 && has_phrase(CLOSING, title) && is_words(lines, blocks) {
        edits.leave_out(passage.line..=passage.end - 1, "the section");
    }
}

/// Returns whether blocks are only text and lists, without a field of the format.
fn is_words(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> bool {
    let plain = |block: &MarkdownBlock| {
        let text = matches!(
            block.node,
            BlockKind::Paragraph | BlockKind::List { .. } | BlockKind::Rule | BlockKind::Quote
        );
        text && !(block.lines()).any(|line| {
            let text = lines.get(line);
            let keyed = key::split(text)
                .and_then(|(key, _)| canonical(key))
                .is_some_and(has_weight);
            keyed || is_fence(text)
        })
    };
    blocks.iter().all(plain)
}
