//! Steps outside blocks: possible next states and their costs.

use super::cost::{self, Cost};
use super::state::{FenceScope, GrammarPosition, GrammarState, GrammarStep, Nesting, RepairEvent};
use super::token::{FenceRule, FileContent, Gap, Token, TokenKind};
use crate::plan::action::BodyShape;
use crate::plan::line::{Fence, Info, Label, Section};

/// Emits every possible step for a token outside a block.
pub(super) fn step_outside(state: GrammarState, token: &Token, emit: &mut impl FnMut(GrammarStep)) {
    match token.kind {
        TokenKind::Gap(gap) => emit(over_gap(state, gap)),
        TokenKind::Fence(fence) => at_fence(state, fence, token, emit),
        TokenKind::Action(row) => emit(at_action(state, row.shape)),
        TokenKind::Section(section) => emit(at_section(state, section)),
        TokenKind::Label { label, glued } => emit(at_label(state, label, glued)),
        TokenKind::Title {
            spaced,
            after_text: late,
            only,
        } => at_title(state, spaced, late, only, emit),
        TokenKind::End => emit(at_end(state)),
    }
}

/// Returns the step over lines without structure.
fn over_gap(state: GrammarState, gap: Gap) -> GrammarStep {
    let state = GrammarState {
        fresh: false,
        ..state
    };
    if !gap.visible {
        return GrammarStep::to(state, 0);
    }

    match state.position {
        GrammarPosition::Start
        | GrammarPosition::Message
        | GrammarPosition::Finished
        | GrammarPosition::End => GrammarStep::to(state, 0),
        GrammarPosition::Title | GrammarPosition::Action(_) => {
            let file = if gap.file == FileContent::Unknown {
                state.file
            } else {
                gap.file
            };

            let listed = GrammarState {
                listed: state.listed || gap.list,
                file,
                ..state
            };
            let price = if state.position == GrammarPosition::Title {
                cost::PROSE_IN_HEADER
            } else {
                cost::PROSE
            };
            if gap.text {
                prose(listed, price)
            } else if gap.spoken {
                prose(listed, cost::TRIFLE)
            } else {
                GrammarStep::to(listed, 0)
            }
        }
        _ if gap.text || gap.list => prose(state, cost::PROSE),
        // After a document, a sentence could be part of it.
        GrammarPosition::Tail(BodyShape::File | BodyShape::Pairs)
            if state.file != FileContent::Code =>
        {
            prose(state, cost::PROSE)
        }
        _ => prose(state, cost::TRIFLE),
    }
}

fn prose(state: GrammarState, price: Cost) -> GrammarStep {
    misplaced(state, RepairEvent::Prose, price)
}

/// Returns the step at structure of another plan after the fence around the whole plan.
fn second_plan(state: GrammarState) -> GrammarStep {
    misplaced(state, RepairEvent::SecondPlan, cost::SECOND_PLAN)
}

/// Returns the step over something that has no place here, which costs only once.
fn misplaced(state: GrammarState, event: RepairEvent, price: Cost) -> GrammarStep {
    if state.prose {
        return GrammarStep::to(state, 0);
    }

    let next = GrammarState {
        prose: true,
        ..state
    };
    GrammarStep::with_event(event, next, price)
}

/// Returns the cost of leaving a place, and whether the plan is broken there.
fn exit_cost(state: GrammarState) -> (Cost, bool) {
    let unlisted = cost::when(!state.listed, cost::MISSING);
    match state.position {
        GrammarPosition::Start | GrammarPosition::Wrapped => (cost::MISSING_BLOCK, false),
        GrammarPosition::Title => (cost::when(!state.listed, cost::PROSE_IN_HEADER), false),
        GrammarPosition::Head(_) if state.prose => (0, false),
        GrammarPosition::Head(_) => (cost::MISSING, false),
        GrammarPosition::Action(BodyShape::ListAlone) => (unlisted, false),
        GrammarPosition::Action(_) => (cost::MISSING_BLOCK + unlisted, true),
        GrammarPosition::Label(_) | GrammarPosition::Between => (cost::MISSING_BLOCK, true),
        GrammarPosition::After(_)
        | GrammarPosition::Top
        | GrammarPosition::Tail(_)
        | GrammarPosition::Message
        | GrammarPosition::Finished
        | GrammarPosition::End => (0, false),
    }
}

/// Returns the step to a new part of the plan, including the cost of leaving the current place.
fn move_on(state: GrammarState, next: GrammarState, event: Option<RepairEvent>) -> GrammarStep {
    let (cost, broken) = exit_cost(state);
    let event = if broken {
        Some(RepairEvent::Broken)
    } else {
        event
    };
    GrammarStep {
        state: next,
        cost,
        event,
    }
}

fn at_action(state: GrammarState, shape: BodyShape) -> GrammarStep {
    let position = match shape {
        BodyShape::Message => GrammarPosition::Message,
        other => GrammarPosition::Action(other),
    };
    let early = matches!(
        state.position,
        GrammarPosition::Title | GrammarPosition::Head(_) | GrammarPosition::After(_)
    );
    if state.position == GrammarPosition::Finished {
        return second_plan(state);
    }

    move_on(state, state.at(position), Some(RepairEvent::Action))
        .plus(cost::when(early, cost::MISSING))
}

fn at_section(state: GrammarState, section: Section) -> GrammarStep {
    let position = if section == Section::Plan {
        GrammarPosition::Top
    } else {
        GrammarPosition::Head(section)
    };

    let next = state.at(position);
    let skipped = match (state.position, section) {
        (GrammarPosition::Title, Section::Rationale)
        | (GrammarPosition::Start | GrammarPosition::Wrapped, _) => 0,
        (
            GrammarPosition::After(Section::Rationale) | GrammarPosition::Head(Section::Rationale),
            Section::Memos | Section::Plan,
        ) => 0,
        (
            GrammarPosition::After(Section::Memos) | GrammarPosition::Head(Section::Memos),
            Section::Plan,
        ) => 0,
        (GrammarPosition::Title | GrammarPosition::After(_) | GrammarPosition::Head(_), _) => {
            cost::MISSING
        }
        (GrammarPosition::Message, _) => return GrammarStep::to(state, cost::SECTION_IN_MESSAGE),
        (GrammarPosition::Finished, _) => return second_plan(state),
        _ => return prose(state, 2 * cost::PROSE),
    };
    move_on(state, next, None).plus(skipped)
}

fn at_label(state: GrammarState, label: Label, glued: bool) -> GrammarStep {
    let next = state.further(GrammarPosition::Label(label));
    let (price, event) = if glued {
        (cost::TRIFLE, Some(RepairEvent::Glued))
    } else {
        (0, None)
    };

    let unlisted = cost::when(!state.listed, cost::MISSING);
    match (state.position, label) {
        (GrammarPosition::Action(BodyShape::Pairs), Label::Find) => GrammarStep {
            state: next,
            cost: price + unlisted,
            event,
        },
        (GrammarPosition::Tail(BodyShape::Pairs), Label::Find)
        | (GrammarPosition::Between, Label::Replace) => GrammarStep {
            state: next,
            cost: price,
            event,
        },
        (
            GrammarPosition::Action(BodyShape::Pairs)
            | GrammarPosition::Tail(BodyShape::Pairs)
            | GrammarPosition::Between
            | GrammarPosition::Label(_),
            _,
        ) => GrammarStep::with_event(RepairEvent::Broken, next, cost::MISSING_BLOCK),
        (GrammarPosition::Message | GrammarPosition::Finished | GrammarPosition::Start, _) => {
            GrammarStep::to(state, 0)
        }
        _ => prose(state, cost::PROSE),
    }
}

/// Emits the steps at a title. The flags: a space follows the `#`, other text precedes it, no other
/// line can be the title.
fn at_title(
    state: GrammarState,
    spaced: bool,
    late: bool,
    only: bool,
    emit: &mut impl FnMut(GrammarStep),
) {
    match state.position {
        GrammarPosition::Start | GrammarPosition::Wrapped => {
            let preamble = cost::when(
                late && state.position == GrammarPosition::Start,
                cost::TRIFLE,
            );

            let squeezed = cost::when(!spaced, cost::TRIFLE);
            emit(GrammarStep::with_event(
                RepairEvent::Title,
                state.at(GrammarPosition::Title),
                preamble + squeezed,
            ));
            if state.position == GrammarPosition::Start && !only {
                emit(GrammarStep::to(
                    state,
                    cost::when(spaced, cost::TITLE_SKIPPED),
                ));
            }
        }
        _ => emit(over_gap(
            state,
            Gap {
                visible: true,
                solid: true,
                text: true,
                ..Gap::default()
            },
        )),
    }
}

fn at_end(state: GrammarState) -> GrammarStep {
    let early = matches!(
        state.position,
        GrammarPosition::Top
            | GrammarPosition::Head(_)
            | GrammarPosition::After(_)
            | GrammarPosition::Title
    );
    let unclosed = cost::when(
        state.wrap != 0 && state.position != GrammarPosition::Finished,
        cost::WRAPPER_OPEN,
    );

    let (cost, broken) = exit_cost(state);
    // Treating the whole reply as text before the title means that no plan was found.
    let event = (broken || state.position == GrammarPosition::Start).then_some(RepairEvent::Broken);
    GrammarStep {
        state: GrammarState {
            wrap: 0,
            ..GrammarState::default().at(GrammarPosition::End)
        },
        cost,
        event,
    }
    .plus(unclosed + cost::when(early, cost::MISSING))
}

fn at_fence(state: GrammarState, fence: Fence, token: &Token, emit: &mut impl FnMut(GrammarStep)) {
    match state.position {
        GrammarPosition::Finished => emit(GrammarStep::to(state, 0)),
        GrammarPosition::Start => {
            emit(GrammarStep::to(state.opened(fence), 0));
            let wrapper = if fence.info == Info::Code {
                cost::WRAPPER_CODE
            } else {
                cost::WRAPPER
            };
            emit(GrammarStep::with_event(
                RepairEvent::Wrap,
                GrammarState {
                    wrap: fence.mark,
                    ..state.at(GrammarPosition::Wrapped)
                },
                wrapper,
            ));
        }
        _ => {
            end_wrapper(state, fence, emit);
            open(state, fence, token, emit);
        }
    }
}

/// Emits the step in which a fence closes the fence around the whole plan.
fn end_wrapper(state: GrammarState, fence: Fence, emit: &mut impl FnMut(GrammarStep)) {
    let complete = match state.position {
        GrammarPosition::Tail(_) | GrammarPosition::Message => true,
        GrammarPosition::Action(BodyShape::ListAlone) => state.listed,
        _ => false,
    };
    let trailing = match fence.info {
        Info::Bare => 0,
        Info::Odd => cost::TRAILING_ODD,
        Info::Document | Info::Code => return,
    };
    if complete && state.wrap == fence.mark {
        emit(GrammarStep::with_event(
            RepairEvent::Unwrap,
            state.at(GrammarPosition::Finished),
            trailing,
        ));
    }
}

/// Returns the cost if a block opens here.
fn opening(state: GrammarState) -> Cost {
    match state.position {
        GrammarPosition::Head(_) if state.prose => cost::MISPLACED_BLOCK_AFTER_PROSE,
        GrammarPosition::Head(_)
        | GrammarPosition::Label(_)
        | GrammarPosition::Tail(BodyShape::Queries)
        | GrammarPosition::Message => 0,
        GrammarPosition::Action(BodyShape::File | BodyShape::Script | BodyShape::Queries)
            if state.listed =>
        {
            0
        }
        GrammarPosition::Action(BodyShape::File | BodyShape::Script | BodyShape::Queries) => {
            cost::MISSING
        }
        _ if state.prose => cost::MISPLACED_BLOCK_AFTER_PROSE,
        _ => cost::MISPLACED_BLOCK,
    }
}

/// Emits the steps in which a fence opens a block or belongs to nothing. A fence that certainly
/// follows the rule opens its block.
fn open(state: GrammarState, fence: Fence, token: &Token, emit: &mut impl FnMut(GrammarStep)) {
    let in_list = matches!(
        state.position,
        GrammarPosition::Action(_)
            | GrammarPosition::Message
            | GrammarPosition::Tail(BodyShape::Queries)
    );
    // Markdown treats such a fence as text, except inside a list item.
    if fence.indent > 3 && !(in_list && fence.indent <= 9) {
        return emit(GrammarStep::to(state, 0));
    }

    let price = opening(state);
    let odd = cost::when(fence.info == Info::Odd, cost::MISPLACED_BLOCK_AFTER_PROSE);

    let inside = state.opened(fence);
    let nesting = inside
        .block
        .map_or(Nesting::Anywhere, |block| block.nesting);
    let event = RepairEvent::Open(scope(state), nesting);
    let opened = GrammarStep::with_event(event, inside, price + odd);
    let rule = if opened.cost == 0 && !matches!(state.position, GrammarPosition::Message) {
        token.rule
    } else {
        FenceRule::Broken
    };

    if rule != FenceRule::Plain {
        let is_asked = matches!(
            state.position,
            GrammarPosition::Action(_) | GrammarPosition::Label(_)
        );
        let lost = cost::when(
            is_asked && opened.cost == 0 && token.complete_until.is_some(),
            cost::SURPLUS_OPENER,
        );

        emit(opened);
        surplus(state, fence, &mut |step: GrammarStep| emit(step.plus(lost)));
    }

    if rule != FenceRule::Broken {
        emit(opened.by_rule(rule));
    }
}

/// Emits the step in which a fence belongs to nothing.
fn surplus(state: GrammarState, fence: Fence, emit: &mut impl FnMut(GrammarStep)) {
    if matches!(fence.info, Info::Bare | Info::Odd) {
        let price = if state.fresh {
            cost::SURPLUS_FRESH
        } else {
            cost::SURPLUS
        };
        emit(GrammarStep::with_event(RepairEvent::Surplus, state, price));
    }
}

pub(super) fn scope(state: GrammarState) -> FenceScope {
    match state.position {
        GrammarPosition::Message => FenceScope::Message,
        GrammarPosition::Head(Section::Rationale) => FenceScope::Rationale,
        _ => FenceScope::Content,
    }
}
