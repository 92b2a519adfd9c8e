//! State of a reading within the plan grammar.

use std::hash::{Hash, Hasher};

use super::cost::{self, Cost};
use super::token::{FenceRule, FileContent};
use crate::plan::action::BodyShape;
use crate::plan::line::{Fence, Info, Label, Section};

/// A state of the pass. The possible next steps depend on nothing else. The default is the state before
/// the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GrammarState {
    pub position: GrammarPosition,
    pub block: Option<OpenBlock>,
    /// Mark of the fence around the whole plan; 0 without one.
    pub wrap: u8,
    /// Content type that the action's path suggests.
    pub file: FileContent,
    /// Whether the list below the heading was seen.
    pub listed: bool,
    /// Whether misplaced text was seen, which costs only once.
    pub prose: bool,
    /// Whether the previous line closed a block.
    pub fresh: bool,
    /// Whether the FIND of this pair left a fence open.
    pub find_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum GrammarPosition {
    /// Before the title.
    #[default]
    Start,
    Wrapped,
    Title,
    Head(Section),
    After(Section),
    Top,
    /// Below the heading of an action other than a message.
    Action(BodyShape),
    Label(Label),
    Between,
    Tail(BodyShape),
    Message,
    Finished,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenBlock {
    pub fence: Fence,
    /// Whether the content is prose, which can contain fences.
    pub document: bool,
    /// Where fences are possible in the content.
    pub nesting: Nesting,
    /// Whether a non-blank line was seen.
    pub solid: bool,
    /// Whether the block follows the fence rule and is read accordingly.
    pub sure: bool,
    /// Number of open inner fences.
    pub depth: u8,
    pub inner: Option<Fence>,
    /// Kinds of plan structure taken as content (see `block::looks_like_plan`).
    pub lookalikes: u8,
}

/// Where lines of a content can be fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nesting {
    /// Anywhere, as in Markdown, or irrelevant.
    Anywhere,
    Unknown,
    /// Only in a comment, string or here-document: the content is code.
    Spans,
}

impl GrammarState {
    /// Returns the state at a new place of the same plan.
    pub fn at(self, position: GrammarPosition) -> Self {
        GrammarState {
            position,
            wrap: self.wrap,
            ..GrammarState::default()
        }
    }

    /// Returns the state at a further place of the same action.
    pub fn further(self, position: GrammarPosition) -> Self {
        GrammarState {
            file: self.file,
            find_open: self.find_open,
            ..self.at(position)
        }
    }

    /// Returns the state inside a block opened by this fence.
    pub fn opened(self, fence: Fence) -> Self {
        let document = match (fence.info, self.file) {
            _ if self.position == GrammarPosition::Action(BodyShape::Script) => false,
            (Info::Bare | Info::Odd, file) => {
                !matches!(file, FileContent::Code | FileContent::Other)
            }
            (info, _) => info == Info::Document,
        };
        let block = OpenBlock {
            fence,
            document,
            nesting: self.nesting(fence.info),
            solid: false,
            sure: false,
            depth: 0,
            inner: None,
            lookalikes: 0,
        };

        GrammarState {
            block: Some(block),
            fresh: false,
            ..self
        }
    }

    /// Returns where fences are possible in a block with this info string.
    fn nesting(self, info: Info) -> Nesting {
        let of_file = match (self.file, info) {
            (FileContent::Markdown, _) => Nesting::Anywhere,
            (FileContent::Code, _) | (FileContent::Unknown | FileContent::Other, Info::Code) => {
                Nesting::Spans
            }
            _ => Nesting::Unknown,
        };
        match self.position {
            GrammarPosition::Action(BodyShape::Script) | GrammarPosition::Head(Section::Memos) => {
                Nesting::Spans
            }
            GrammarPosition::Action(BodyShape::File) | GrammarPosition::Label(_) => of_file,
            GrammarPosition::Action(BodyShape::Queries)
            | GrammarPosition::Tail(BodyShape::Queries) => Nesting::Unknown,
            _ => Nesting::Anywhere,
        }
    }

    pub fn after_block(self, block: &OpenBlock) -> Self {
        let position = match self.position {
            GrammarPosition::Head(section) => GrammarPosition::After(section),
            GrammarPosition::Action(
                shape @ (BodyShape::File | BodyShape::Script | BodyShape::Queries),
            ) => GrammarPosition::Tail(shape),
            GrammarPosition::Label(Label::Find) => GrammarPosition::Between,
            GrammarPosition::Label(Label::Replace) => GrammarPosition::Tail(BodyShape::Pairs),
            same => {
                return GrammarState {
                    block: None,
                    fresh: true,
                    ..self.at(same).listed_as(self)
                };
            }
        };
        let find_open = self.position == GrammarPosition::Label(Label::Find) && block.depth > 0;
        GrammarState {
            fresh: true,
            find_open,
            ..self.further(position)
        }
    }

    /// Returns this state with the action's properties of another one.
    fn listed_as(self, other: Self) -> Self {
        GrammarState {
            file: other.file,
            listed: other.listed,
            prose: other.prose,
            ..self
        }
    }

    pub fn with(self, block: OpenBlock) -> Self {
        GrammarState {
            block: Some(block),
            ..self
        }
    }
}

impl Hash for GrammarState {
    /// Hashes what tells most states apart, in few words: every step of the pass looks a state up.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let block = self.block.map_or(0, |block| {
            u64::from(block.fence.len) << 32
                | u64::from(block.lookalikes) << 24
                | u64::from(block.depth) << 16
                | u64::from(block.sure) << 9
                | u64::from(block.solid) << 8
        });
        let flags = [self.listed, self.prose, self.fresh, self.find_open];
        let flags = flags.map(u64::from).into_iter();
        hasher.write_u64(flags.fold(block, |word, flag| word << 1 | flag));
        std::mem::discriminant(&self.position).hash(hasher);
    }
}

impl OpenBlock {
    pub fn filled(self) -> Self {
        OpenBlock {
            solid: true,
            ..self
        }
    }

    /// Returns the block inside one more inner fence.
    pub fn nested(self, fence: Fence) -> Self {
        OpenBlock {
            depth: self.depth + 1,
            inner: self.inner.or(Some(fence)),
            solid: true,
            ..self
        }
    }

    /// Returns the block after the innermost fence.
    pub fn unnested(self) -> Self {
        let depth = self.depth - 1;
        OpenBlock {
            depth,
            inner: self.inner.filter(|_| depth > 0),
            solid: true,
            ..self
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepairEvent {
    Title,
    Wrap,
    Unwrap,
    Action,
    Open(FenceScope, Nesting),
    Close(FenceScope, CloserDeviation),
    /// The open block ends before this line; its closing fence is missing.
    Forgotten(FenceScope),
    /// A fence that belongs to nothing.
    Surplus,
    /// A label that needs a blank line before it.
    Glued,
    /// Text that does not belong here.
    Prose,
    /// A second plan after the fence around the first one.
    SecondPlan,
    /// The grammar does not allow this line.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FenceScope {
    /// A block that the plan's grammar requires.
    Content,
    /// The rationale, which has no effect.
    Rationale,
    Message,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloserDeviation {
    /// None, or only longer.
    Proper,
    Shorter,
    /// Text follows the fence.
    Trailing,
    OtherMark,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct GrammarStep {
    pub state: GrammarState,
    pub cost: Cost,
    /// Effect on the token's line.
    pub event: Option<RepairEvent>,
}

impl GrammarStep {
    pub fn to(state: GrammarState, cost: Cost) -> Self {
        GrammarStep {
            state,
            cost,
            event: None,
        }
    }

    pub fn with_event(event: RepairEvent, state: GrammarState, cost: Cost) -> Self {
        GrammarStep {
            state,
            cost,
            event: Some(event),
        }
    }

    /// Returns the step into a block that is trusted by the fence rule, with its cost.
    pub fn by_rule(self, rule: FenceRule) -> Self {
        let Some(block) = self.state.block else {
            return self;
        };
        let price = match (rule, block.document) {
            (FenceRule::KeptOverAction, true) => cost::LOOK_BY_RULE,
            (FenceRule::KeptOverAction, false) => cost::LOOK_BY_RULE_IN_CODE,
            _ => 0,
        };

        GrammarStep {
            state: self.state.with(OpenBlock {
                sure: true,
                ..block
            }),
            ..self
        }
        .plus(price)
    }

    pub fn plus(self, cost: Cost) -> Self {
        GrammarStep {
            cost: self.cost + cost,
            ..self
        }
    }
}
