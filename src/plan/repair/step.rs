//! One step outside of blocks: where a token may lead, and at what cost.

use super::cost::{self, Cost};
use super::event::{Event, Scope};
use super::line::{Fence, Info};
use super::state::{Block, Nesting, Place, State};
use super::token::{File, Gap, Glued, Rule, Token, TokenKind};
use crate::plan::action::heading::{Label, Section};
use crate::plan::action::shape::BodyShape;

/// A step of a reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move {
    /// Where it leads.
    pub state: State,
    /// What it costs.
    pub cost: Cost,
    /// What it does at the token's line.
    pub event: Option<Event>,
}

impl Move {
    /// Returns a step that does nothing at its line.
    pub fn to(state: State, cost: Cost) -> Self {
        Move {
            state,
            cost,
            event: None,
        }
    }

    /// Returns a step that does something.
    pub fn doing(event: Event, state: State, cost: Cost) -> Self {
        Move {
            state,
            cost,
            event: Some(event),
        }
    }

    /// Returns the step into a block that is read by the fence rule.
    fn by_rule(self, rule: Rule) -> Self {
        let Some(block) = self.state.block else {
            return self;
        };
        let price = match (rule, block.document) {
            (Rule::KeptOverAction, true) => cost::LOOK_BY_RULE,
            (Rule::KeptOverAction, false) => cost::LOOK_BY_RULE_IN_CODE,
            _ => 0,
        };
        Move {
            state: self.state.with(Block {
                sure: true,
                ..block
            }),
            ..self
        }
        .plus(price)
    }

    /// Returns the step with a further cost.
    pub fn plus(self, cost: Cost) -> Self {
        Move {
            cost: self.cost + cost,
            ..self
        }
    }
}

/// Passes every step that a token may be, outside of a block, to `emit`.
pub(super) fn outside(state: State, token: &Token, emit: &mut impl FnMut(Move)) {
    match token.kind {
        TokenKind::Gap(gap) => emit(over_gap(state, gap)),
        TokenKind::Fence(fence) => at_fence(state, fence, token, emit),
        TokenKind::Action(row) => emit(at_action(state, row.shape)),
        TokenKind::Section(section) => emit(at_section(state, section)),
        TokenKind::Label(label, glued) => emit(at_label(state, label, glued)),
        TokenKind::Title { spaced, late, only } => at_title(state, [spaced, late, only], emit),
        TokenKind::End => emit(at_end(state)),
    }
}

/// Returns the step over lines that the grammar has no word for.
fn over_gap(state: State, gap: Gap) -> Move {
    let state = State {
        fresh: false,
        ..state
    };
    if !gap.words {
        return Move::to(state, 0);
    }
    match state.place {
        Place::Start | Place::Message | Place::Done | Place::End => Move::to(state, 0),
        Place::Title | Place::Action(_) => {
            let file = if gap.file == File::Unknown {
                state.file
            } else {
                gap.file
            };
            let listed = State {
                listed: state.listed || gap.list,
                file,
                ..state
            };
            let price = if state.place == Place::Title {
                cost::PROSE_IN_HEADER
            } else {
                cost::PROSE
            };
            if gap.text {
                prose(listed, price)
            } else if gap.spoken {
                prose(listed, cost::TRIFLE)
            } else {
                Move::to(listed, 0)
            }
        }
        _ if gap.text || gap.list => prose(state, cost::PROSE),
        // Behind a document a sentence may be its own.
        Place::Tail(BodyShape::File | BodyShape::Pairs) if state.file != File::Code => {
            prose(state, cost::PROSE)
        }
        _ => prose(state, cost::TRIFLE),
    }
}

/// Returns the step over text that has no place here; it is paid for once.
fn prose(state: State, price: Cost) -> Move {
    if state.prose {
        return Move::to(state, 0);
    }
    Move::doing(
        Event::Prose,
        State {
            prose: true,
            ..state
        },
        price,
    )
}

/// Returns what it costs to leave a place, and whether the plan is broken there.
fn leave(state: State) -> (Cost, bool) {
    let unlisted = if state.listed { 0 } else { cost::MISSING };
    match state.place {
        Place::Start | Place::Wrapped => (cost::MISSING_BLOCK, false),
        Place::Title => (
            if state.listed {
                0
            } else {
                cost::PROSE_IN_HEADER
            },
            false,
        ),
        Place::Head(_) if state.prose => (0, false),
        Place::Head(_) => (cost::MISSING, false),
        Place::Action(BodyShape::ListAlone) => (unlisted, false),
        Place::Action(_) => (cost::MISSING_BLOCK + unlisted, true),
        Place::Label(_) | Place::Between => (cost::MISSING_BLOCK, true),
        Place::After(_)
        | Place::Top
        | Place::Tail(_)
        | Place::Message
        | Place::Done
        | Place::End => (0, false),
    }
}

/// Returns the step to a new part of the plan, from a place that is left.
fn move_on(state: State, next: State, event: Option<Event>) -> Move {
    let (cost, broken) = leave(state);
    let event = if broken { Some(Event::Broken) } else { event };
    Move {
        state: next,
        cost,
        event,
    }
}

/// Returns the step at an action's heading.
fn at_action(state: State, shape: BodyShape) -> Move {
    let place = match shape {
        BodyShape::Message => Place::Message,
        other => Place::Action(other),
    };
    let early = matches!(state.place, Place::Title | Place::Head(_) | Place::After(_));
    if state.place == Place::Done {
        return second_plan(state);
    }
    move_on(state, state.at(place), Some(Event::Action)).plus(if early { cost::MISSING } else { 0 })
}

/// Returns the step at the structure of another plan behind the fence around the whole plan; it is
/// paid for once.
fn second_plan(state: State) -> Move {
    if state.prose {
        return Move::to(state, 0);
    }
    Move::doing(
        Event::SecondPlan,
        State {
            prose: true,
            ..state
        },
        cost::SECOND_PLAN,
    )
}

/// Returns the step at a section's heading.
fn at_section(state: State, section: Section) -> Move {
    let place = if section == Section::Plan {
        Place::Top
    } else {
        Place::Head(section)
    };
    let next = state.at(place);
    let skipped = match (state.place, section) {
        (Place::Title, Section::Rationale) | (Place::Start | Place::Wrapped, _) => 0,
        (
            Place::After(Section::Rationale) | Place::Head(Section::Rationale),
            Section::Memos | Section::Plan,
        ) => 0,
        (Place::After(Section::Memos) | Place::Head(Section::Memos), Section::Plan) => 0,
        (Place::Title | Place::After(_) | Place::Head(_), _) => cost::MISSING,
        (Place::Message, _) => return Move::to(state, cost::SECTION_IN_MESSAGE),
        (Place::Done, _) => return second_plan(state),
        _ => return prose(state, 2 * cost::PROSE),
    };
    move_on(state, next, None).plus(skipped)
}

/// Returns the step at a label.
fn at_label(state: State, label: Label, glued: Glued) -> Move {
    let next = state.further(Place::Label(label));
    let (price, event) = if glued == Glued::Yes {
        (cost::TRIFLE, Some(Event::Glued))
    } else {
        (0, None)
    };
    let unlisted = if state.listed { 0 } else { cost::MISSING };
    match (state.place, label) {
        (Place::Action(BodyShape::Pairs), Label::Find) => Move {
            state: next,
            cost: price + unlisted,
            event,
        },
        (Place::Tail(BodyShape::Pairs), Label::Find) | (Place::Between, Label::Replace) => Move {
            state: next,
            cost: price,
            event,
        },
        (
            Place::Action(BodyShape::Pairs)
            | Place::Tail(BodyShape::Pairs)
            | Place::Between
            | Place::Label(_),
            _,
        ) => Move::doing(Event::Broken, next, cost::MISSING_BLOCK),
        (Place::Message | Place::Done | Place::Start, _) => Move::to(state, 0),
        _ => prose(state, cost::PROSE),
    }
}

/// Passes the steps at a title, which is `spaced` from its `#` or not, the first words or not, and
/// the only one or not.
fn at_title(state: State, [spaced, late, only]: [bool; 3], emit: &mut impl FnMut(Move)) {
    match state.place {
        Place::Start | Place::Wrapped => {
            let preamble = if late && state.place == Place::Start {
                cost::TRIFLE
            } else {
                0
            };
            let squeezed = if spaced { 0 } else { cost::TRIFLE };
            emit(Move::doing(
                Event::Title,
                state.at(Place::Title),
                preamble + squeezed,
            ));
            if state.place == Place::Start && !only {
                emit(Move::to(
                    state,
                    if spaced { cost::TITLE_SKIPPED } else { 0 },
                ));
            }
        }
        _ => emit(over_gap(
            state,
            Gap {
                words: true,
                solid: true,
                text: true,
                ..Gap::default()
            },
        )),
    }
}

/// Returns the step at the end of the reply.
fn at_end(state: State) -> Move {
    let early = matches!(
        state.place,
        Place::Top | Place::Head(_) | Place::After(_) | Place::Title
    );
    let unclosed = if state.wrap != 0 && state.place != Place::Done {
        cost::WRAPPER_OPEN
    } else {
        0
    };
    let (cost, broken) = leave(state);
    // To take all of the reply for words before the title is to find no plan in it.
    let event = (broken || state.place == Place::Start).then_some(Event::Broken);
    Move {
        state: State {
            wrap: 0,
            ..State::start().at(Place::End)
        },
        cost,
        event,
    }
    .plus(unclosed + if early { cost::MISSING } else { 0 })
}

/// Passes the steps at a fence outside of a block.
fn at_fence(state: State, fence: Fence, token: &Token, emit: &mut impl FnMut(Move)) {
    match state.place {
        Place::Done => emit(Move::to(state, 0)),
        Place::Start => {
            emit(Move::to(state.opened(fence), 0));
            let wrapper = if fence.info == Info::Code {
                cost::WRAPPER_CODE
            } else {
                cost::WRAPPER
            };
            emit(Move::doing(
                Event::Wrap,
                State {
                    wrap: fence.mark,
                    ..state.at(Place::Wrapped)
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

/// Passes the step in which a fence ends the whole plan.
fn end_wrapper(state: State, fence: Fence, emit: &mut impl FnMut(Move)) {
    let complete = match state.place {
        Place::Tail(_) | Place::Message => true,
        Place::Action(BodyShape::ListAlone) => state.listed,
        _ => false,
    };
    let trailing = match fence.info {
        Info::Bare => 0,
        Info::Odd => cost::TRAILING_ODD,
        Info::Document | Info::Code => return,
    };
    if complete && state.wrap == fence.mark {
        emit(Move::doing(Event::Unwrap, state.at(Place::Done), trailing));
    }
}

/// Passes the steps in which a fence opens a block, or belongs to nothing. One that obeys the rule
/// beyond doubt opens its block.
fn open(state: State, fence: Fence, token: &Token, emit: &mut impl FnMut(Move)) {
    let in_list = matches!(
        state.place,
        Place::Action(_) | Place::Message | Place::Tail(BodyShape::Queries)
    );
    if fence.indent > 3 && !(in_list && fence.indent <= 9) {
        return emit(Move::to(state, 0));
    }
    let price = match state.place {
        Place::Head(_) if state.prose => cost::STRAY_AFTER_PROSE,
        Place::Head(_) | Place::Label(_) | Place::Tail(BodyShape::Queries) | Place::Message => 0,
        Place::Action(BodyShape::File | BodyShape::Script | BodyShape::Queries) if state.listed => {
            0
        }
        Place::Action(BodyShape::File | BodyShape::Script | BodyShape::Queries) => cost::MISSING,
        _ if state.prose => cost::STRAY_AFTER_PROSE,
        _ => cost::STRAY,
    };
    let odd = if fence.info == Info::Odd {
        cost::STRAY_AFTER_PROSE
    } else {
        0
    };
    let inside = state.opened(fence);
    let nesting = inside
        .block
        .map_or(Nesting::Anywhere, |block| block.nesting);
    let event = Event::Open(scope(state), nesting);
    let opened = Move::doing(event, inside, price + odd);
    let rule = if opened.cost == 0 && !matches!(state.place, Place::Message) {
        token.rule
    } else {
        Rule::Broken
    };
    if rule != Rule::Plain {
        let is_asked = matches!(state.place, Place::Action(_) | Place::Label(_));
        let lost = if is_asked && opened.cost == 0 && token.whole.is_some() {
            cost::SURPLUS_OPENER
        } else {
            0
        };
        emit(opened);
        surplus(state, fence, &mut |step: Move| emit(step.plus(lost)));
    }
    if rule != Rule::Broken {
        emit(opened.by_rule(rule));
    }
}

/// Passes the step in which a fence belongs to nothing.
fn surplus(state: State, fence: Fence, emit: &mut impl FnMut(Move)) {
    if matches!(fence.info, Info::Bare | Info::Odd) {
        let price = if state.fresh {
            cost::SURPLUS_FRESH
        } else {
            cost::SURPLUS
        };
        emit(Move::doing(Event::Surplus, state, price));
    }
}

/// Returns whose fences stand at a place.
pub(super) fn scope(state: State) -> Scope {
    match state.place {
        Place::Message => Scope::Message,
        Place::Head(Section::Rationale) => Scope::Rationale,
        _ => Scope::Content,
    }
}
