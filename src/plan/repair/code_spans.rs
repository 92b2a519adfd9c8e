//! Finds fences inside a comment, a string or a here-document of the surrounding code.

use super::line::ReplyLine;
use super::token::{Token, TokenKind, file_extension};
use crate::plan::action::ActionRow;
use crate::plan::action::shape::BodyShape;
use crate::text::{fence, language};

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
            TokenKind::Label(..) => asked.opened = false,
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
