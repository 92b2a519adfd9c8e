//! Where in the plan grammar a reading stands.

use super::line::{Fence, Info};
use super::token::FileContent;
use crate::plan::action::heading::{Label, Section};
use crate::plan::action::shape::BodyShape;

/// A state of the pass: what the next steps may be depends on nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GrammarState {
    /// The place in the grammar.
    pub place: GrammarPlace,
    /// The open block, if any.
    pub block: Option<OpenBlock>,
    /// The mark of the fence around the whole plan; 0 without one.
    pub wrap: u8,
    /// What the action's path says about its file.
    pub file: FileContent,
    /// The list below the heading was seen.
    pub listed: bool,
    /// Text that has no place here was seen.
    pub prose: bool,
    /// A block was closed by the line before.
    pub fresh: bool,
    /// The FIND of this pair left a fence open.
    pub find_open: bool,
}

/// A place in the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrammarPlace {
    /// Before the title.
    Start,
    /// Behind the opening of a fence around the whole plan.
    Wrapped,
    /// Below the title.
    Title,
    /// Below a section's heading.
    Head(Section),
    /// Behind a section's block.
    After(Section),
    /// Below `## Action Plan`.
    Top,
    /// Below the heading of an action that has no free text.
    Action(BodyShape),
    /// Below a label.
    Label(Label),
    /// Between FIND's block and REPLACE.
    Between,
    /// Behind an action's block.
    Tail(BodyShape),
    /// In an action's message.
    Message,
    /// Behind the fence around the whole plan.
    Done,
    /// At the end.
    End,
}

/// An open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenBlock {
    /// The opener's mark.
    pub mark: u8,
    /// Its length.
    pub len: u16,
    /// Its indentation.
    pub indent: u8,
    /// Its info string.
    pub info: Info,
    /// Whether the content is prose, in which fences may stand.
    pub document: bool,
    /// Where fences may stand in it.
    pub nesting: Nesting,
    /// Something other than blank lines was seen.
    pub solid: bool,
    /// The block obeys the fence rule, and is read so.
    pub sure: bool,
    /// How many inner fences are open.
    pub depth: u8,
    /// The outermost inner fence.
    pub inner: Option<InnerFence>,
    /// The kinds of plan structure that were taken for content.
    pub looks: u8,
}

/// Where the lines of a content may be fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Nesting {
    /// Anywhere, as in Markdown, or it does not matter.
    Anywhere,
    /// It cannot be told.
    Unknown,
    /// Only in a comment, a string or a here-document: the content is code.
    Spans,
}

/// An open fence of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InnerFence {
    /// Its length.
    pub len: u16,
    /// Its indentation.
    pub indent: u8,
    /// Its info string.
    pub info: Info,
}

impl GrammarState {
    /// Returns the state before the first line.
    pub fn start() -> Self {
        GrammarState {
            place: GrammarPlace::Start,
            block: None,
            wrap: 0,
            file: FileContent::Unknown,
            listed: false,
            prose: false,
            fresh: false,
            find_open: false,
        }
    }

    /// Returns the state at a new place of the same plan.
    pub fn at(self, place: GrammarPlace) -> Self {
        GrammarState {
            place,
            wrap: self.wrap,
            ..GrammarState::start()
        }
    }

    /// Returns the state at a further place of the same action.
    pub fn further(self, place: GrammarPlace) -> Self {
        GrammarState {
            file: self.file,
            find_open: self.find_open,
            ..self.at(place)
        }
    }

    /// Returns the state in a block that a fence opens here.
    pub fn opened(self, fence: Fence) -> Self {
        let document = match (fence.info, self.file) {
            _ if self.place == GrammarPlace::Action(BodyShape::Script) => false,
            (Info::Bare | Info::Odd, file) => {
                !matches!(file, FileContent::Code | FileContent::Other)
            }
            (info, _) => info == Info::Document,
        };
        let nesting = self.nesting(fence.info);
        let Fence {
            mark,
            len,
            indent,
            info,
        } = fence;
        let block = OpenBlock {
            mark,
            len,
            indent,
            info,
            document,
            nesting,
            solid: false,
            sure: false,
            depth: 0,
            inner: None,
            looks: 0,
        };

        GrammarState {
            block: Some(block),
            fresh: false,
            ..self
        }
    }

    /// Returns where fences may stand in a block that opens here with an info string.
    fn nesting(self, info: Info) -> Nesting {
        let of_file = match (self.file, info) {
            (FileContent::Markdown, _) => Nesting::Anywhere,
            (FileContent::Code, _) | (FileContent::Unknown | FileContent::Other, Info::Code) => {
                Nesting::Spans
            }
            _ => Nesting::Unknown,
        };
        match self.place {
            GrammarPlace::Action(BodyShape::Script) | GrammarPlace::Head(Section::Memos) => {
                Nesting::Spans
            }
            GrammarPlace::Action(BodyShape::File) | GrammarPlace::Label(_) => of_file,
            GrammarPlace::Action(BodyShape::Queries) | GrammarPlace::Tail(BodyShape::Queries) => {
                Nesting::Unknown
            }
            _ => Nesting::Anywhere,
        }
    }

    /// Returns the state behind the open block.
    pub fn closed(self, block: &OpenBlock) -> Self {
        let place = match self.place {
            GrammarPlace::Head(section) => GrammarPlace::After(section),
            GrammarPlace::Action(
                shape @ (BodyShape::File | BodyShape::Script | BodyShape::Queries),
            ) => GrammarPlace::Tail(shape),
            GrammarPlace::Label(Label::Find) => GrammarPlace::Between,
            GrammarPlace::Label(Label::Replace) => GrammarPlace::Tail(BodyShape::Pairs),
            same => {
                return GrammarState {
                    block: None,
                    fresh: true,
                    ..self.at(same).listed_as(self)
                };
            }
        };
        let find_open = self.place == GrammarPlace::Label(Label::Find) && block.depth > 0;
        GrammarState {
            fresh: true,
            find_open,
            ..self.further(place)
        }
    }

    /// Returns this state with what another one knows of its action.
    fn listed_as(self, other: Self) -> Self {
        GrammarState {
            file: other.file,
            listed: other.listed,
            prose: other.prose,
            ..self
        }
    }

    /// Returns this state with its block changed.
    pub fn with(self, block: OpenBlock) -> Self {
        GrammarState {
            block: Some(block),
            ..self
        }
    }
}

/// A state in two words: equal for equal states alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateKey(pub [u64; 2]);

impl GrammarState {
    /// Returns the state in two words.
    pub fn key(&self) -> StateKey {
        let flags = [
            self.listed,
            self.prose,
            self.fresh,
            self.find_open,
            self.block.is_some(),
        ];
        let flags = flags
            .into_iter()
            .fold(0, |word, flag| word << 1 | u64::from(flag));
        let [outer, inner] = self.block.map_or([0; 2], |block| block.words());

        StateKey([
            self.place.word() << 24
                | u64::from(self.wrap) << 16
                | (self.file as u64) << 8
                | flags
                | inner << 32,
            outer,
        ])
    }
}

impl GrammarPlace {
    /// Returns a number of its own for every place.
    fn word(self) -> u64 {
        match self {
            GrammarPlace::Start => 0,
            GrammarPlace::Wrapped => 1,
            GrammarPlace::Title => 2,
            GrammarPlace::Top => 3,
            GrammarPlace::Between => 4,
            GrammarPlace::Done => 5,
            GrammarPlace::End => 6,
            GrammarPlace::Head(section) => 16 + section as u64,
            GrammarPlace::After(section) => 32 + section as u64,
            GrammarPlace::Action(shape) => 48 + shape as u64,
            GrammarPlace::Label(label) => 64 + label as u64,
            GrammarPlace::Tail(shape) => 80 + shape as u64,
            GrammarPlace::Message => 7,
        }
    }
}

impl OpenBlock {
    /// Returns the block in two words, the second of 27 bits: the outer fence with what was seen,
    /// the inner fence.
    fn words(&self) -> [u64; 2] {
        let fence = |len: u16, indent: u8, info: Info| {
            u64::from(len) << 10 | u64::from(indent) << 2 | info as u64
        };
        let inner = self.inner.map_or(0, |inner| {
            1 << 26 | fence(inner.len, inner.indent, inner.info)
        });
        let outer = fence(self.len, self.indent, self.info) << 8 | u64::from(self.mark);
        let flags = (self.nesting as u64) << 3
            | u64::from(self.sure) << 2
            | u64::from(self.solid) << 1
            | u64::from(self.document);

        [
            outer << 24 | u64::from(self.looks) << 16 | u64::from(self.depth) << 8 | flags,
            inner,
        ]
    }

    /// Returns the block with solid content.
    pub fn filled(self) -> Self {
        OpenBlock {
            solid: true,
            ..self
        }
    }

    /// Returns the block inside one more inner fence.
    pub fn nested(self, fence: Fence) -> Self {
        let inner = InnerFence {
            len: fence.len,
            indent: fence.indent,
            info: fence.info,
        };
        OpenBlock {
            depth: self.depth + 1,
            inner: self.inner.or(Some(inner)),
            solid: true,
            ..self
        }
    }

    /// Returns the block behind the innermost fence.
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
