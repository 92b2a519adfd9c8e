//! A reply with its best reading, as input for the checks of `doubt`.

use super::emit::BlockSpan;
use super::line::ReplyLine;
use super::pass::BestReadings;
use super::token::Token;

#[derive(Clone, Copy)]
pub(super) struct Analysis<'a> {
    pub lines: &'a [ReplyLine<'a>],
    pub tokens: &'a [Token],
    pub best: &'a BestReadings,
    /// Blocks of the best reading.
    pub spans: &'a [BlockSpan],
}
