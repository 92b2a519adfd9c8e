//! The lines of a reply as tokens: each line that the grammar knows, and the gaps between them.
//!
//! A gap is one step of the pass however long it is, which is what makes the pass fast.

use super::line::{Fence, Info, LineKind, ReplyLine, is_document, is_markdown};
use crate::plan::action::ActionRow;
use crate::plan::action::heading::{self, Label, Section};
use crate::text::language;

/// A step of the pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    /// The index of its (first) line.
    pub line: usize,
    /// What it is.
    pub kind: TokenKind,
    /// Whether a block that opens here would obey the fence rule.
    pub rule: FenceRule,
    /// Where Markdown closes a block that opens here, if it finds nothing but text and whole blocks
    /// from there up to the next line that the grammar knows.
    pub whole: Option<usize>,
    /// Whether the line stands in a comment, a string or a here-document of the code around it.
    pub spanned: bool,
}

/// Whether a block that opens at a fence would be closed by the first fence that is long enough,
/// with something behind it that the grammar knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FenceRule {
    /// It would not, or this is no fence.
    Broken,
    /// It would, and nothing that the grammar knows would be its content.
    Plain,
    /// It would, and a section's heading or a label would be its content.
    Kept,
    /// It would, and an action's heading would be its content.
    KeptOverAction,
}

/// What a token is.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenKind {
    /// Lines that the grammar has no word for.
    Gap(Gap),
    /// A fence.
    Fence(Fence),
    /// An action's heading.
    Action(&'static ActionRow),
    /// A section's heading.
    Section(Section),
    /// A label, and whether the line before would swallow it.
    Label(Label, Glued),
    /// A title, before the first section or action.
    Title {
        /// A blank stands behind the `#`.
        spaced: bool,
        /// Something other than blank lines stands before it.
        late: bool,
        /// No other line can be the title.
        only: bool,
    },
    /// The end of the reply.
    End,
}

/// Whether a label stands right below a list, without a blank line between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glued {
    /// It does; CommonMark reads it as the last item's text.
    Yes,
    /// It is a paragraph, a heading or an item of its own.
    No,
}

/// What a gap holds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gap {
    /// A line that is neither blank nor a rule.
    pub words: bool,
    /// A line that is not blank.
    pub solid: bool,
    /// A list.
    pub list: bool,
    /// Text that is no part of a list.
    pub text: bool,
    /// Sentences.
    pub spoken: bool,
    /// The kind of file that a `File Path` names.
    pub file: FileContent,
}

/// What a file's name says about its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum FileContent {
    /// No name, or no ending.
    #[default]
    Unknown,
    /// Markdown, in which fences stand.
    Markdown,
    /// Other prose, in which fences may stand.
    Document,
    /// Code of a language that is known.
    Code,
    /// Anything else.
    Other,
}

/// Returns the tokens of a reply; the last one is its end.
pub(super) fn tokens(lines: &[ReplyLine<'_>]) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(lines.len() / 4 + 2);
    let (mut open, mut preamble, mut late) = (None::<(usize, Gap)>, true, false);
    for (at, line) in lines.iter().enumerate() {
        let known = match line.kind {
            LineKind::Fence(fence) => Some(TokenKind::Fence(fence)),
            LineKind::Action(row) => Some(TokenKind::Action(row)),
            LineKind::Section(section) => Some(TokenKind::Section(section)),
            LineKind::Label(label) => Some(TokenKind::Label(label, glued(lines, at))),
            LineKind::Title { spaced } if preamble => Some(TokenKind::Title {
                spaced,
                late,
                only: false,
            }),
            _ => None,
        };
        late |= line.kind != LineKind::Blank;
        let Some(kind) = known else {
            let (_, gap) = open.get_or_insert((at, Gap::default()));
            extend(gap, lines, at);
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
    judge_title(&mut tokens);
    judge(&mut tokens);
    tokens
}

impl Token {
    /// Returns a token that is not judged yet.
    fn new(line: usize, kind: TokenKind) -> Self {
        Token {
            line,
            kind,
            rule: FenceRule::Broken,
            whole: None,
            spanned: false,
        }
    }

    /// Returns whether the grammar knows it, fences aside.
    fn is_structure(&self) -> bool {
        !matches!(
            self.kind,
            TokenKind::Gap(_) | TokenKind::Fence(_) | TokenKind::Title { .. }
        )
    }
}

/// Marks the title of a reply that begins with it and has no other.
fn judge_title(tokens: &mut [Token]) {
    let mut titles = tokens.iter_mut().filter_map(|token| match &mut token.kind {
        TokenKind::Title { late, only, .. } => Some((*late, only)),
        _ => None,
    });
    let first = titles.next();
    let alone = titles.next().is_none();
    if let Some((false, only)) = first {
        *only = alone;
    }
}

/// Judges every fence: from the last one on, each looks for the next one of its kind that is as
/// long.
fn judge(tokens: &mut [Token]) {
    let mut waiting: [Vec<(u16, usize)>; 2] = [Vec::new(), Vec::new()];
    let (mut actions, mut structure) = (0, 0);
    let mut seen = vec![(0u32, 0u32); tokens.len()];
    for at in (0..tokens.len()).rev() {
        actions += u32::from(matches!(tokens[at].kind, TokenKind::Action(_)));
        structure += u32::from(tokens[at].is_structure());
        seen[at] = (actions, structure);
        let TokenKind::Fence(fence) = tokens[at].kind else {
            continue;
        };
        let same = &mut waiting[usize::from(fence.mark == b'~')];

        while same.last().is_some_and(|&(len, _)| len < fence.len) {
            same.pop();
        }

        if let Some(&(_, closer)) = same.last()
            && closes_by_rule(&tokens[closer..], fence)
        {
            tokens[at].rule = match () {
                () if seen[at].0 > seen[closer].0 => FenceRule::KeptOverAction,
                () if seen[at].1 > seen[closer].1 => FenceRule::Kept,
                () => FenceRule::Plain,
            };
        }
        same.push((fence.len, at));
    }
}

/// Returns whether the first of some tokens closes a block, and the grammar can go on behind it.
fn closes_by_rule(tokens: &[Token], opener: Fence) -> bool {
    let proper = matches!(tokens[0].kind, TokenKind::Fence(closer) if closer == Fence { info: Info::Bare, ..opener } && closer.indent == 0);
    let mut behind = tokens[1..]
        .iter()
        .filter(|token| !matches!(token.kind, TokenKind::Gap(gap) if !gap.words));
    let wraps =
        |token: &Token| matches!(token.kind, TokenKind::Fence(fence) if fence.info == Info::Bare);

    match behind.next() {
        Some(next) if proper && wraps(next) => behind
            .next()
            .is_some_and(|last| matches!(last.kind, TokenKind::End)),
        Some(next) => proper && next.is_structure(),
        None => false,
    }
}

/// Adds a line to a gap.
fn extend(gap: &mut Gap, lines: &[ReplyLine<'_>], at: usize) {
    match lines[at].kind {
        LineKind::Blank => return,
        LineKind::Rule => {}
        LineKind::Sentence => {
            gap.words = true;
            gap.spoken |= !(gap.list && lines[at - 1].kind != LineKind::Blank);
        }
        LineKind::List => {
            (gap.words, gap.list) = (true, true);
            if gap.file == FileContent::Unknown {
                gap.file = file(lines[at].text);
            }
        }
        _ => {
            gap.words = true;
            gap.text |= !(gap.list && lines[at - 1].kind != LineKind::Blank);
        }
    }

    gap.solid = true;
}

/// Returns whether CommonMark would read the label at a line as the text of the list above it.
fn glued(lines: &[ReplyLine<'_>], at: usize) -> Glued {
    let above = at.checked_sub(1).map(|before| lines[before].kind);
    let own = lines[at].text.trim_start();
    let apart = own.starts_with('#') || heading::unlisted(own) != own;
    if !apart
        && matches!(
            above,
            Some(LineKind::List | LineKind::Text | LineKind::Sentence)
        )
    {
        Glued::Yes
    } else {
        Glued::No
    }
}

/// Reads what a `File Path` item says about the file.
fn file(item: &str) -> FileContent {
    match ending(item) {
        Some(ending) if is_markdown(ending) => FileContent::Markdown,
        Some(ending) if is_document(ending) => FileContent::Document,
        Some(ending) if language::is_known(ending) => FileContent::Code,
        Some(_) => FileContent::Other,
        None => FileContent::Unknown,
    }
}

/// Returns the ending of the file that a `File Path` item names.
pub(super) fn ending(item: &str) -> Option<&str> {
    if !item.contains("Path") && !item.contains("path") {
        return None;
    }
    let name = item.trim_end_matches([')', '>', '`', ' ', '*']);
    let (_, ending) = name.rsplit_once('.')?;
    (!ending.contains(['/', ' ', ']'])).then_some(ending)
}
