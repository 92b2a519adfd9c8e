//! Fast path: accepts a reply if CommonMark's reading fits the grammar and is the only one.
//!
//! That is the case if every step is free, every block is closed, and no line inside a block could
//! close it or open another block of its kind.

use std::ops::Range;

use super::event::RepairEvent;
use super::grammar_step::GrammarStep;
use super::line::{Info, LineKind, ReplyLine};
use super::state::{GrammarPosition, GrammarState, OpenBlock};
use super::step::step_outside;
use super::token::{Token, TokenKind};

/// Returns the contents of all blocks if the reply needs no repair.
pub(super) fn unambiguous_blocks(
    lines: &[ReplyLine<'_>],
    tokens: &[Token],
) -> Option<Vec<Range<usize>>> {
    let mut contents = Vec::new();
    let (mut state, mut at) = (GrammarState::start(), 0);
    while let Some(token) = tokens.get(at) {
        let step = only_free_step(state, token)?;
        (state, at) = (step.state, at + 1);
        let Some(block) = state.block else { continue };
        let closer = only_closer(&block, &tokens[at..], state)?;
        at += closer + 1;
        let body = token.line + 1..tokens[at - 1].line;

        if block.indent > 0 && !is_indented_like(&lines[body.clone()], lines[token.line].text) {
            return None;
        }

        contents.push(body);
        state = state.after_block(&block);
    }

    Some(contents)
}

/// Returns the only free step.
fn only_free_step(state: GrammarState, token: &Token) -> Option<GrammarStep> {
    let mut free = None;
    step_outside(state, token, &mut |step| {
        let skips_title = matches!(token.kind, TokenKind::Title { .. }) && step.event.is_none();
        let preamble = state.position == GrammarPosition::Start
            && !matches!(step.event, Some(RepairEvent::Title));
        let is_blank = matches!(token.kind, TokenKind::Gap(gap) if !gap.solid);
        if step.cost == 0 && !skips_title && (!preamble || is_blank) && free.is_none() {
            free = Some(step);
        }
    });
    free
}

/// Returns the index of the token that closes a block; `None` if another fence inside could close
/// it too.
fn only_closer(block: &OpenBlock, tokens: &[Token], state: GrammarState) -> Option<usize> {
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Fence(fence) if fence.mark == block.mark && fence.len >= block.len => {
                let closes = fence.info == Info::Bare && fence.indent == block.indent;
                return closes.then_some(at);
            }
            // RP8: this is what a missing closing fence in a message looks like.
            TokenKind::Action(_)
                if matches!(state.position, GrammarPosition::Message)
                    && block.info == Info::Code =>
            {
                return None;
            }
            _ => {}
        }
    }

    None
}

/// Returns whether every non-blank line has the opener's indentation.
pub(super) fn is_indented_like(body: &[ReplyLine<'_>], opener: &str) -> bool {
    let indent = indent_of(opener);
    body.iter()
        .all(|line| line.text.starts_with(indent) || line.text.trim().is_empty())
}

pub(super) fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Returns whether the closing fence is longer than the opening one.
pub(super) fn is_closed_longer(lines: &[ReplyLine<'_>], body: &Range<usize>) -> bool {
    let len = |at: usize| {
        if let LineKind::Fence(fence) = lines[at].kind {
            fence.len
        } else {
            0
        }
    };
    len(body.end) > len(body.start - 1)
}
