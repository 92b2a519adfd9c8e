//! Converts the lines of a reply to tokens: one per line with structure, and one per gap between
//! them.
//!
//! A gap is a single step of the pass, however long it is. This is what makes the pass fast.

use super::reply::ReplyLine;
use crate::plan::action::{ActionRow, BodyShape};
use crate::plan::line::{
    Fence, Info, Label, LineKind, Section, is_document, is_listed, is_markdown,
};
use crate::text::{fence, language};

#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    /// Index of its first line.
    pub line: usize,
    pub kind: TokenKind,
    /// Whether a block opened here would follow the fence rule.
    pub rule: FenceRule,
    /// Line at which Markdown closes a block opened here, if only text and complete blocks follow
    /// up to the next structure.
    pub complete_until: Option<usize>,
    pub pairs: Option<FencePairs>,
    /// Whether the line is inside a comment, string or here-document of the surrounding code.
    pub spanned: bool,
}

/// The fences behind a token up to the next structure, if they come in pairs, and are all bare and of
/// one character.
#[derive(Debug, Clone, Copy)]
pub(super) struct FencePairs {
    pub shortest: Fence,
    pub last: usize,
}

/// Whether the first fence of sufficient length closes a block opened at this fence, with structure
/// after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FenceRule {
    /// It does not, or this is not a fence.
    Broken,
    /// It does, and the content contains no structure.
    Plain,
    /// It does, and the content contains a section's heading or a label.
    Kept,
    /// It does, and the content contains an action's heading.
    KeptOverAction,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum TokenKind {
    /// Lines without structure.
    Gap(Gap),
    Fence(Fence),
    Action(&'static ActionRow),
    Section(Section),
    Label {
        label: Label,
        /// Whether CommonMark reads it as part of the item in the line before.
        glued: bool,
    },
    /// A title before the first section or action.
    Title {
        /// Whether a space follows the `#`.
        spaced: bool,
        /// Whether a non-blank line precedes it.
        after_text: bool,
        /// Whether no other line can be the title.
        only: bool,
    },
    End,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gap {
    /// A line that is neither blank nor a rule.
    pub visible: bool,
    /// A non-blank line.
    pub solid: bool,
    pub list: bool,
    /// Text outside a list.
    pub text: bool,
    pub spoken: bool,
    /// Content type of the file that a `File Path` names.
    pub file: FileContent,
}

/// Content type of a file, judging by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum FileContent {
    /// No name, or no extension.
    #[default]
    Unknown,
    /// Markdown, which can contain fences.
    Markdown,
    /// Other prose, which can contain fences.
    Document,
    /// Code in a known language.
    Code,
    Other,
}

/// Returns the tokens of a reply; the last one is its end.
pub(super) fn tokenize(lines: &[ReplyLine<'_>]) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(lines.len() / 4 + 2);
    let (mut open, mut preamble, mut after_text) = (None::<(usize, Gap)>, true, false);
    for (at, line) in lines.iter().enumerate() {
        let structure = match line.kind {
            LineKind::Fence(fence) => Some(TokenKind::Fence(fence)),
            LineKind::Action(row) => Some(TokenKind::Action(row)),
            LineKind::Section(section) => Some(TokenKind::Section(section)),
            LineKind::Label(label) => Some(TokenKind::Label {
                label,
                glued: is_glued(lines, at),
            }),
            LineKind::Title { spaced } if preamble => Some(TokenKind::Title {
                spaced,
                after_text,
                only: false,
            }),
            _ => None,
        };
        after_text |= line.kind != LineKind::Blank;
        let Some(kind) = structure else {
            let (_, gap) = open.get_or_insert((at, Gap::default()));
            extend_gap(gap, lines, at);
            continue;
        };

        tokens.extend(
            open.take()
                .map(|(line, gap)| Token::new(line, TokenKind::Gap(gap))),
        );
        preamble &= !matches!(kind, TokenKind::Action(_) | TokenKind::Section(_));
        tokens.push(Token::new(at, kind));
    }

    tokens.extend(open.map(|(line, gap)| Token::new(line, TokenKind::Gap(gap))));
    tokens.push(Token::new(lines.len(), TokenKind::End));
    classify_title(&mut tokens);
    classify_fences(&mut tokens);
    tokens
}

impl Token {
    /// Creates a token without the properties that later passes add.
    fn new(line: usize, kind: TokenKind) -> Self {
        Token {
            line,
            kind,
            rule: FenceRule::Broken,
            complete_until: None,
            pairs: None,
            spanned: false,
        }
    }

    /// Returns whether it is structure other than a fence.
    fn is_structure(&self) -> bool {
        !matches!(
            self.kind,
            TokenKind::Gap(_) | TokenKind::Fence(_) | TokenKind::Title { .. }
        )
    }
}

/// Sets `only` if the reply starts with its only title.
fn classify_title(tokens: &mut [Token]) {
    let mut titles = tokens.iter_mut().filter_map(|token| match &mut token.kind {
        TokenKind::Title {
            after_text: late,
            only,
            ..
        } => Some((*late, only)),
        _ => None,
    });
    let first = titles.next();
    let alone = titles.next().is_none();
    if let Some((false, only)) = first {
        *only = alone;
    }
}

/// Sets the rule of every fence, from the last one to the first: each looks for the next fence of
/// its kind that is long enough.
fn classify_fences(tokens: &mut [Token]) {
    let mut waiting: [Vec<(u16, usize)>; 2] = [Vec::new(), Vec::new()];
    let (mut actions, mut structure) = (0, 0);
    let mut following = vec![(0u32, 0u32); tokens.len()];
    for at in (0..tokens.len()).rev() {
        actions += u32::from(matches!(tokens[at].kind, TokenKind::Action(_)));
        structure += u32::from(tokens[at].is_structure());
        following[at] = (actions, structure);
        let TokenKind::Fence(fence) = tokens[at].kind else {
            continue;
        };
        let same = &mut waiting[usize::from(fence.mark == b'~')];

        // A shorter fence cannot close any earlier block: this one is nearer and longer.
        while same.last().is_some_and(|&(len, _)| len < fence.len) {
            same.pop();
        }

        if let Some(&(_, closer)) = same.last()
            && closes_by_rule(&tokens[closer..], fence)
        {
            tokens[at].rule = match () {
                () if following[at].0 > following[closer].0 => FenceRule::KeptOverAction,
                () if following[at].1 > following[closer].1 => FenceRule::Kept,
                () => FenceRule::Plain,
            };
        }
        same.push((fence.len, at));
    }
}

/// Returns whether the first token closes a block by the rule, and the grammar can continue after
/// it.
fn closes_by_rule(tokens: &[Token], opener: Fence) -> bool {
    let proper = matches!(tokens[0].kind, TokenKind::Fence(closer) if closer == Fence { info: Info::Bare, ..opener } && closer.indent == 0);
    let mut following = tokens[1..]
        .iter()
        .filter(|token| !matches!(token.kind, TokenKind::Gap(gap) if !gap.visible));
    let wraps =
        |token: &Token| matches!(token.kind, TokenKind::Fence(fence) if fence.info == Info::Bare);

    // Before the end, the closing fence of a wrapper around the plan can follow.
    match following.next() {
        Some(next) if proper && wraps(next) => following
            .next()
            .is_some_and(|last| matches!(last.kind, TokenKind::End)),
        Some(next) => proper && next.is_structure(),
        None => false,
    }
}

fn extend_gap(gap: &mut Gap, lines: &[ReplyLine<'_>], at: usize) {
    match lines[at].kind {
        LineKind::Blank => return,
        LineKind::Rule => {}
        LineKind::Sentence => {
            gap.visible = true;
            gap.spoken |= !(gap.list && lines[at - 1].kind != LineKind::Blank);
        }
        LineKind::List => {
            (gap.visible, gap.list) = (true, true);
            if gap.file == FileContent::Unknown {
                gap.file = file_content(lines[at].text);
            }
        }
        _ => {
            gap.visible = true;
            gap.text |= !(gap.list && lines[at - 1].kind != LineKind::Blank);
        }
    }

    gap.solid = true;
}

/// Returns whether CommonMark would read a label as part of the list above it.
fn is_glued(lines: &[ReplyLine<'_>], at: usize) -> bool {
    let above = at.checked_sub(1).map(|before| lines[before].kind);
    let own = lines[at].text.trim_start();
    let is_separate = own.starts_with('#') || is_listed(own);
    let is_item = |kind| matches!(kind, LineKind::List | LineKind::Text | LineKind::Sentence);
    !is_separate && above.is_some_and(is_item)
}

/// Returns the content type that a `File Path` item suggests.
fn file_content(item: &str) -> FileContent {
    match file_extension(item) {
        Some(ending) if is_markdown(ending) => FileContent::Markdown,
        Some(ending) if is_document(ending) => FileContent::Document,
        Some(ending) if language::is_known(ending) => FileContent::Code,
        Some(_) => FileContent::Other,
        None => FileContent::Unknown,
    }
}

/// Returns the extension of the file that a `File Path` item names.
pub(super) fn file_extension(item: &str) -> Option<&str> {
    if !item.contains("Path") && !item.contains("path") {
        return None;
    }
    let name = item.trim_end_matches([')', '>', '`', ' ', '*']);
    let (_, ending) = name.rsplit_once('.')?;
    (!ending.contains(['/', ' ', ']'])).then_some(ending)
}

// Finds complete blocks: those followed only by text and further complete blocks, up to the next
// structure.

/// What Markdown finds from a token on.
#[derive(Clone, Copy)]
struct FollowingBlocks {
    /// Whether only text and complete blocks follow, up to the next structure.
    clear: bool,
    /// Number of structure lines.
    structure: u32,
    /// Number of fences up to the next structure.
    fences: usize,
    /// `None` without fences, or if they differ.
    alike: Option<FencePairs>,
}

impl FollowingBlocks {
    /// Adds a fence in front.
    fn fences_with(self, fence: Fence, line: usize) -> Self {
        let first = FencePairs {
            shortest: fence,
            last: line,
        };
        let alike = match self.alike {
            _ if fence.info != Info::Bare => None,
            None => (self.fences == 0).then_some(first),
            Some(pairs) if pairs.shortest.mark != fence.mark => None,
            Some(pairs) if pairs.shortest.len <= fence.len => Some(pairs),
            Some(pairs) => Some(FencePairs {
                shortest: fence,
                ..pairs
            }),
        };
        FollowingBlocks {
            fences: self.fences + 1,
            alike,
            ..self
        }
    }
}

/// Sets [`Token::complete_until`] of each fence, and [`Token::pairs`].
pub(super) fn mark_complete_blocks(tokens: &mut [Token]) {
    let mut closers: [Vec<(u16, usize)>; 2] = [Vec::new(), Vec::new()];
    let nothing = FollowingBlocks {
        clear: true,
        structure: 0,
        fences: 0,
        alike: None,
    };
    let mut following = vec![nothing; tokens.len() + 1];

    for at in (0..tokens.len()).rev() {
        let next = following[at + 1];
        tokens[at].pairs = next.alike.filter(|_| next.fences.is_multiple_of(2));
        following[at] = match tokens[at].kind {
            TokenKind::Gap(_) | TokenKind::Title { .. } => next,
            // Markdown treats a fence indented by four columns as text.
            TokenKind::Fence(fence) if fence.indent > 3 => next.fences_with(fence, tokens[at].line),
            TokenKind::Fence(fence) => {
                let closer = nearest_closer(&mut closers, fence, at);
                let closing = closer.filter(|&closer| {
                    following[closer].structure == next.structure && following[closer + 1].clear
                });
                tokens[at].complete_until = closing.map(|closer| tokens[closer].line);
                FollowingBlocks {
                    clear: closing.is_some(),
                    ..next.fences_with(fence, tokens[at].line)
                }
            }
            _ => FollowingBlocks {
                structure: next.structure + 1,
                ..nothing
            },
        };
    }
}

/// Returns the nearest fence that closes the block, and records this fence for earlier ones. A
/// longer fence before a shorter one also closes every block that the shorter one could.
fn nearest_closer(closers: &mut [Vec<(u16, usize)>; 2], fence: Fence, at: usize) -> Option<usize> {
    let same_mark = &mut closers[usize::from(fence.mark == b'~')];
    let first = same_mark.partition_point(|&(len, _)| len >= fence.len);
    let nearest = first.checked_sub(1).map(|last| same_mark[last].1);
    if fence.info == Info::Bare {
        // Longest first: those that are not longer close nothing that this one does not.
        same_mark.truncate(same_mark.partition_point(|&(len, _)| len > fence.len));
        same_mark.push((fence.len, at));
    }

    nearest
}

/// Code that an action or a label expects.
#[derive(Clone, Copy, Default)]
struct ExpectedCode<'a> {
    row: Option<&'static ActionRow>,
    ending: Option<&'a str>,
    /// Set once its block was seen.
    opened: bool,
}

/// Sets [`Token::spanned`] for every fence in an action's code that is inside something that spans
/// lines. The code is assumed to extend to the next structure.
pub(super) fn mark_code_spans(lines: &[ReplyLine<'_>], tokens: &mut [Token]) {
    let mut asked = ExpectedCode::default();
    for at in 0..tokens.len() {
        match tokens[at].kind {
            TokenKind::Action(row) => {
                asked = ExpectedCode {
                    row: Some(row),
                    ..ExpectedCode::default()
                };
            }
            TokenKind::Section(_) | TokenKind::Title { .. } | TokenKind::End => {
                asked = ExpectedCode::default();
            }
            TokenKind::Label { .. } => asked.opened = false,
            TokenKind::Gap(_) if asked.ending.is_none() && !asked.opened => {
                let mut list = lines[tokens[at].line..tokens[at + 1].line].iter();
                asked.ending = list.find_map(|line| file_extension(line.text));
            }
            TokenKind::Fence(_) if !asked.opened => {
                asked.opened = true;
                if let Some(word) = code_language(asked, lines[tokens[at].line].text) {
                    mark_spans_in(lines, &mut tokens[at..], word);
                }
            }
            TokenKind::Gap(_) | TokenKind::Fence(_) => {}
        }
    }
}

fn code_language<'a>(asked: ExpectedCode<'a>, opener: &'a str) -> Option<&'a str> {
    let info = fence::read(opener).map_or("", |fence| fence.info);
    let tag = info.split([' ', '\t', ',']).next();
    let tag = tag.filter(|word| language::is_known(word));
    match asked.row?.shape {
        BodyShape::Script => Some(tag.unwrap_or("sh")),
        BodyShape::File | BodyShape::Pairs => {
            asked.ending.filter(|word| language::is_known(word)).or(tag)
        }
        _ => None,
    }
}

fn mark_spans_in(lines: &[ReplyLine<'_>], tokens: &mut [Token], language: &str) {
    let first = tokens[0].line + 1;
    let is_in_code = |token: &Token| {
        matches!(
            token.kind,
            TokenKind::Gap(_) | TokenKind::Fence(_) | TokenKind::Title { .. }
        )
    };
    let len = tokens.iter().take_while(|token| is_in_code(token)).count();
    let end = tokens.get(len).map_or(lines.len(), |token| token.line);
    let code: Vec<&str> = lines[first..end].iter().map(|line| line.text).collect();

    if len < 2
        || !tokens[1..len]
            .iter()
            .any(|token| matches!(token.kind, TokenKind::Fence(_)))
    {
        return;
    }
    let spanned = language::spanned(language, &code);
    for token in &mut tokens[1..len] {
        token.spanned = matches!(token.kind, TokenKind::Fence(_)) && spanned[token.line - first];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::repair::{Spelling, reply, token};

    #[test]
    fn a_fence_opens_a_block_up_to_an_indentation_of_three_columns() {
        for (indent, expected) in [("", Some(2)), ("   ", Some(2)), ("    ", None)] {
            let text = format!("{indent}```sh\nx\n{indent}```\n");
            let mut tokens = token::tokenize(&reply::read_lines(&text, Spelling::Exact));
            mark_complete_blocks(&mut tokens);
            let opener = tokens.iter().find(|token| token.line == 0).unwrap();
            assert_eq!(opener.complete_until, expected, "{text}");
        }
    }
}
