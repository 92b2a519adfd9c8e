//! Steps inside a block: a token belongs to the content, opens or closes an inner fence, or ends the
//! block.

use super::cost::{self, Cost};
use super::state::{
    CloserDeviation, GrammarPosition, GrammarState, GrammarStep, Nesting, OpenBlock, RepairEvent,
};
use super::step::{scope, step_outside};
use super::token::{Token, TokenKind};
use crate::plan::action::BodyShape;
use crate::plan::line::{Fence, Info, Label, Section};

/// Plan structure taken as content, as bits of [`OpenBlock::lookalikes`].
mod lookalike {
    /// `## Action Plan` outside inner fences.
    pub(super) const PLAN: u8 = 1;
    /// An action outside inner fences.
    pub(super) const RAW: u8 = 2;
    /// An action in a document's inner fence.
    pub(super) const DOCUMENT: u8 = 4;
    /// An action in an inner fence without a language.
    pub(super) const BARE: u8 = 8;
    /// An action in an inner fence of another language.
    pub(super) const CODE: u8 = 16;
    pub(super) const LABEL: u8 = 32;
}

/// Inner fences that can be open at the same time.
const MAX_DEPTH: u8 = 4;

/// Emits every possible step for a token inside a block.
pub(super) fn inside(
    state: GrammarState,
    block: OpenBlock,
    token: &Token,
    emit: &mut impl FnMut(GrammarStep),
) {
    if block.sure {
        return by_rule(state, block, token, emit);
    }
    match token.kind {
        TokenKind::Gap(gap) => emit(GrammarStep::to(
            state.with(OpenBlock {
                solid: block.solid || gap.solid,
                ..block
            }),
            0,
        )),
        TokenKind::Title { .. } => emit(GrammarStep::to(state.with(block.filled()), 0)),
        TokenKind::Fence(fence) if block.nesting == Nesting::Spans && token.spanned => {
            close(state, block, fence, &mut |step: GrammarStep| {
                emit(step.plus(cost::CLOSED_IN_SPAN))
            });
            emit(GrammarStep::to(state.with(block.filled()), cost::INNER));
        }
        TokenKind::Fence(fence) => {
            let extra_cost = outside_of_spans(&block, fence);
            close(state, block, fence, emit);
            keep_as_content(state, block, fence, &mut |step: GrammarStep| {
                emit(step.plus(extra_cost))
            });
        }
        TokenKind::Action(_) | TokenKind::Section(_) | TokenKind::Label { .. } => {
            emit(look_alike(state, block, token));
            forget(state, block, token, emit);
        }
        TokenKind::End => forget(state, block, token, emit),
    }
}

/// Returns the extra cost in code if a fence that could close the block opens an inner one.
fn outside_of_spans(block: &OpenBlock, fence: Fence) -> Cost {
    let rivals = fence.closes(block.fence) && fence.is_aligned(block.fence);
    cost::when(
        rivals && block.nesting == Nesting::Spans && block.depth == 0,
        cost::INNER_OUTSIDE_OF_SPANS,
    )
}

/// Emits the only step of a block that is trusted by the fence rule: the first fence that can close
/// it does.
fn by_rule(
    state: GrammarState,
    block: OpenBlock,
    token: &Token,
    emit: &mut impl FnMut(GrammarStep),
) {
    match token.kind {
        TokenKind::Fence(fence) if fence.is_long_enough(block.fence) => {
            close(state, block, fence, emit)
        }
        TokenKind::Gap(gap) if !gap.solid => emit(GrammarStep::to(state, 0)),
        // Not reached: a block by the rule has a closing fence.
        TokenKind::End => {}
        _ => emit(GrammarStep::to(state.with(block.filled()), 0)),
    }
}

fn close(state: GrammarState, block: OpenBlock, fence: Fence, emit: &mut impl FnMut(GrammarStep)) {
    let trailing = match fence.info {
        Info::Bare => 0,
        Info::Odd => cost::TRAILING_ODD,
        Info::Document | Info::Code => cost::TRAILING_WORD,
    };
    let opener = block.fence;
    let (how, price) = match () {
        () if trailing > 0 && fence.mark != opener.mark => return,
        () if trailing == cost::TRAILING_WORD && fence.len < opener.len => return,
        () if fence.mark != opener.mark => (CloserDeviation::OtherMark, cost::OTHER_MARK),
        () if trailing > 0 => (
            CloserDeviation::Trailing,
            trailing + cost::when(fence.len < opener.len, cost::SHORTER_TOO),
        ),
        () if fence.len < opener.len => (CloserDeviation::Shorter, cost::SHORTER),
        () if fence.len > opener.len => (CloserDeviation::Proper, cost::LONGER),
        () => (CloserDeviation::Proper, 0),
    };
    let askew = match () {
        () if fence.indent == opener.indent => 0,
        () if fence.is_aligned(opener) => cost::ASKEW,
        () => cost::ASKEW_FAR,
    };
    let empty = cost::when(
        state.position == GrammarPosition::Label(Label::Find) && !block.solid,
        cost::EMPTY_FIND,
    );
    let next = state.after_block(&block);
    let price = price + askew + empty + left_open(state, block, how);
    if state.position == GrammarPosition::Start {
        return emit(GrammarStep::to(next, 0));
    }
    emit(GrammarStep::with_event(
        RepairEvent::Close(scope(state), how),
        next,
        price,
    ));
}

/// Returns the cost if the content leaves an inner fence open.
fn left_open(state: GrammarState, block: OpenBlock, how: CloserDeviation) -> Cost {
    let Some(inner) = block.inner else { return 0 };
    match state.position {
        _ if looks_like_plan(&block) => cost::DISORDER,
        _ if inner.len < block.fence.len && how == CloserDeviation::Proper => cost::OPEN_SHORTER,
        GrammarPosition::Label(Label::Replace) if state.find_open => 0,
        GrammarPosition::Label(_) if inner.info == Info::Bare => cost::OPEN_EDIT,
        GrammarPosition::Label(_) => cost::OPEN_EDIT_TAGGED,
        GrammarPosition::Message => cost::OPEN_MESSAGE,
        _ if block.document && inner.info == Info::Bare => cost::OPEN_BARE,
        _ if block.document => cost::OPEN_DOCUMENT,
        _ => cost::OPEN_CODE,
    }
}

/// Returns whether an action was taken as content outside a document's fence.
fn looks_like_plan(block: &OpenBlock) -> bool {
    block.lookalikes & !(lookalike::LABEL | lookalike::DOCUMENT) != 0
}

fn closing_inner(block: &OpenBlock, inner: Fence, fence: Fence) -> Cost {
    let askew = cost::when(fence.indent != inner.indent, cost::INNER_ASKEW);
    let longer = match () {
        () if fence.len == inner.len => 0,
        () if inner.len < block.fence.len && fence.len >= block.fence.len => {
            cost::INNER_CLOSED_BY_RIVAL
        }
        () => cost::INNER_LONGER,
    };
    askew + longer
}

fn keep_as_content(
    state: GrammarState,
    block: OpenBlock,
    fence: Fence,
    emit: &mut impl FnMut(GrammarStep),
) {
    let filled = state.with(block.filled());
    let tagged = matches!(fence.info, Info::Document | Info::Code);
    let Some(inner) = block.inner.filter(|_| fence.mark == block.fence.mark) else {
        let opens = fence.mark == block.fence.mark && (tagged || fence.info == Info::Bare);
        let query = matches!(
            state.position,
            GrammarPosition::Action(BodyShape::Queries) | GrammarPosition::Tail(BodyShape::Queries)
        );
        let price = cost::INNER + cost::when(query, cost::INNER_IN_QUERY) + rivalry(&block, fence);
        let odd = cost::when(fence.mark == block.fence.mark && !opens, cost::ODD_KEPT);
        return emit(if opens {
            GrammarStep::to(state.with(block.nested(fence)), price)
        } else {
            GrammarStep::to(filled, odd)
        });
    };
    if fence.len < inner.len || fence.info == Info::Odd {
        return emit(GrammarStep::to(filled, 0));
    }
    if fence.info == Info::Bare {
        return emit(GrammarStep::to(
            state.with(block.unnested()),
            closing_inner(&block, inner, fence),
        ));
    }
    let as_text = if inner.info == Info::Bare {
        cost::TAGGED_IN_BARE[usize::from(!block.document)]
    } else {
        0
    };
    emit(GrammarStep::to(filled, as_text));
    if block.depth < MAX_DEPTH {
        emit(GrammarStep::to(
            state.with(block.nested(fence)),
            as_text.max(cost::NESTED),
        ));
    }
}

/// Returns the cost if a fence that could close the block opens an inner one.
fn rivalry(block: &OpenBlock, fence: Fence) -> Cost {
    match () {
        () if fence.info != Info::Bare || fence.len < block.fence.len => 0,
        () if block.fence.len > 3 => cost::INNER_RIVAL,
        () if !block.document => cost::INNER_RIVAL_IN_CODE,
        () => 0,
    }
}

/// Returns the step that keeps plan structure as content.
fn look_alike(state: GrammarState, block: OpenBlock, token: &Token) -> GrammarStep {
    let (bit, price) = match (state.position, token.kind) {
        (GrammarPosition::Start, _) => (0, 0),
        // A block where none belongs is as likely a second plan as anything else.
        (
            GrammarPosition::Tail(BodyShape::File | BodyShape::Pairs | BodyShape::Script),
            TokenKind::Section(Section::Plan),
        ) => (lookalike::PLAN, 0),
        (
            GrammarPosition::Tail(BodyShape::File | BodyShape::Pairs | BodyShape::Script),
            TokenKind::Section(_),
        ) => (0, 0),
        (_, TokenKind::Action(_)) => action_look(state, block),
        (_, TokenKind::Section(Section::Plan)) => plan_look(state, block),
        (GrammarPosition::Head(_), TokenKind::Section(_)) => (0, cost::LOOK_SECTION_IN_SECTION),
        (_, TokenKind::Section(_)) => (0, cost::LOOK_SECTION),
        (GrammarPosition::Label(_), _) => (lookalike::LABEL, cost::LOOK_LABEL),
        _ => (0, 0),
    };
    let is_known = bit != 0 && block.lookalikes & bit != 0;
    let whole_edit =
        bit != lookalike::LABEL && bit != 0 && block.lookalikes & lookalike::LABEL != 0;
    let price = if is_known {
        0
    } else {
        price + cost::when(whole_edit, cost::LOOK_EDIT)
    };
    GrammarStep::to(
        state.with(OpenBlock {
            lookalikes: block.lookalikes | bit,
            solid: true,
            ..block
        }),
        price,
    )
}

/// Returns kind and cost of an action heading as content.
fn action_look(state: GrammarState, block: OpenBlock) -> (u8, Cost) {
    let around = match state.position {
        GrammarPosition::Message => Some(block.inner.map_or(block.fence.info, |inner| inner.info)),
        _ => block.inner.map(|inner| inner.info),
    };
    let in_code = cost::when(!block.document, cost::LOOK_IN_CODE);
    match around {
        Some(Info::Document) => (lookalike::DOCUMENT, cost::LOOK_DOCUMENT),
        Some(Info::Bare) => (lookalike::BARE, cost::LOOK_BARE + in_code),
        Some(Info::Code | Info::Odd) => (lookalike::CODE, cost::LOOK_CODE),
        None if block.lookalikes & lookalike::PLAN != 0 => (lookalike::RAW, 0),
        None => (lookalike::RAW, cost::LOOK_RAW + in_code),
    }
}

/// Returns kind and cost of `## Action Plan` as content.
fn plan_look(state: GrammarState, block: OpenBlock) -> (u8, Cost) {
    if block.inner.is_some() || matches!(state.position, GrammarPosition::Message) {
        return action_look(state, block);
    }
    let in_code = cost::when(!block.document, cost::LOOK_IN_CODE);
    let price = if matches!(state.position, GrammarPosition::Head(_)) {
        cost::LOOK_PLAN_IN_SECTION
    } else {
        cost::LOOK_PLAN
    };
    (lookalike::PLAN, price + in_code)
}

/// Emits the step in which the block ended before this token and its closing fence is missing.
fn forget(
    state: GrammarState,
    block: OpenBlock,
    token: &Token,
    emit: &mut impl FnMut(GrammarStep),
) {
    // RP7: a block without content is never closed like this.
    let unsaid = !block.solid || state.position == GrammarPosition::Start;
    if unsaid {
        return;
    }
    let disorder = looks_like_plan(&block);
    let price = if disorder {
        cost::DISORDER
    } else {
        cost::FORGOTTEN
    };
    let open = if disorder {
        0
    } else {
        left_open(state, block, CloserDeviation::Shorter)
    };
    // The closing fence inserted before a label separates it from the text above.
    let kind = match token.kind {
        TokenKind::Label { label, .. } => TokenKind::Label {
            label,
            glued: false,
        },
        kind => kind,
    };
    step_outside(
        state.after_block(&block),
        &Token { kind, ..*token },
        &mut |next| {
            let wrapped = matches!(token.kind, TokenKind::End) && next.cost == cost::WRAPPER_OPEN;
            if next.cost == 0 || wrapped {
                emit(GrammarStep::with_event(
                    RepairEvent::Forgotten(scope(state)),
                    next.state,
                    price + open + next.cost,
                ));
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost_of_closer(indent: u8) -> Cost {
        let fence = |indent| Fence {
            mark: b'`',
            len: 3,
            indent,
            info: Info::Bare,
        };
        let before = GrammarState {
            position: GrammarPosition::Head(Section::Rationale),
            ..GrammarState::default()
        };
        let opened = before.opened(fence(1));
        let mut total = 0;
        let block = opened.block.unwrap();
        close(opened, block, fence(indent), &mut |step| total += step.cost);
        total
    }

    #[test]
    fn a_closing_fence_at_another_indentation_costs_more_from_four_columns_on() {
        assert_eq!(
            [0, 1, 2, 4, 5].map(cost_of_closer),
            [cost::ASKEW, 0, cost::ASKEW, cost::ASKEW, cost::ASKEW_FAR]
        );
    }
}
