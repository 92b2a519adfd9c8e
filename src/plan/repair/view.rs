//! A reply with its best reading, as everything that doubts it looks at it.

use super::emit::BlockSpan;
use super::line::ReplyLine;
use super::pass::Best;
use super::token::Token;

/// A reply with its best reading.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    /// Its lines.
    pub lines: &'a [ReplyLine<'a>],
    /// Its tokens.
    pub tokens: &'a [Token],
    /// Its best readings.
    pub best: &'a Best,
    /// The blocks of the best one.
    pub spans: &'a [BlockSpan],
}
