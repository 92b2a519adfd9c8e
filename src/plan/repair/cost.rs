//! Costs of deviations from the plan grammar. The cheapest reading wins.
//!
//! The numbers rank likelihood. They were estimated and then tuned on damaged plans, and they are
//! part of the format: `docs/formats/repair.md` lists them.

/// Sum of the costs of a reading, in millionths.
pub(super) type Cost = u64;

pub(super) fn when(occurs: bool, cost: Cost) -> Cost {
    if occurs { cost } else { 0 }
}

pub(super) const UNIT: Cost = 1_000_000;
/// Minimum lead over the next reading for a result without doubt.
pub(super) const MARGIN: Cost = 20 * UNIT;
/// A step at this cost or more is a repair that the user sees.
pub(super) const REPAIR: Cost = 25 * UNIT;
/// Readings that are worse than the best by more than this are dropped.
pub(super) const HOPELESS: Cost = 250 * UNIT;

/// An inner fence. Makes the reading with fewer of them win among otherwise equal ones.
pub(super) const INNER: Cost = 1;
/// An inner fence in a query.
pub(super) const INNER_IN_QUERY: Cost = 40 * UNIT;
/// An inner closing fence that is longer than its opening one.
pub(super) const INNER_LONGER: Cost = 5 * UNIT;
/// The same, and long enough to close the block.
pub(super) const INNER_CLOSED_BY_RIVAL: Cost = 30 * UNIT;
/// A bare fence as long as an outer fence of four or more, as an inner opening fence.
pub(super) const INNER_RIVAL: Cost = 25 * UNIT;
/// The same at any length, in code.
pub(super) const INNER_RIVAL_IN_CODE: Cost = 15 * UNIT;
/// The same in code, outside any comment, string or here-document.
pub(super) const INNER_OUTSIDE_OF_SPANS: Cost = 120 * UNIT;
/// A closing fence in the middle of a comment, string or here-document of code.
pub(super) const CLOSED_IN_SPAN: Cost = 60 * UNIT;
/// An inner closing fence at another indentation.
pub(super) const INNER_ASKEW: Cost = 3 * UNIT;
/// A fence with a language inside an inner fence of the same length.
pub(super) const NESTED: Cost = 10 * UNIT;
/// The same as text of an inner fence without a language: in a document, in code.
pub(super) const TAGGED_IN_BARE: [Cost; 2] = [25 * UNIT, 30 * UNIT];

/// A closing fence longer than the opening one.
pub(super) const LONGER: Cost = 10 * UNIT;
/// A closing fence shorter than the opening one.
pub(super) const SHORTER: Cost = 40 * UNIT;
/// A closing fence at another indentation.
pub(super) const ASKEW: Cost = 10 * UNIT;
/// A closing fence indented so far that Markdown treats it as text.
pub(super) const ASKEW_FAR: Cost = 20 * UNIT;
/// A closing fence of the other character.
pub(super) const OTHER_MARK: Cost = 80 * UNIT;
/// A closing fence followed by text that could be a language.
pub(super) const TRAILING_WORD: Cost = 50 * UNIT;
/// A closing fence followed by text that could not be a language.
pub(super) const TRAILING_ODD: Cost = 30 * UNIT;
/// The same, if it is also shorter.
pub(super) const SHORTER_TOO: Cost = 15 * UNIT;
/// A fence followed by such text, as content.
pub(super) const ODD_KEPT: Cost = 30 * UNIT;
/// A missing closing fence.
pub(super) const FORGOTTEN: Cost = 50 * UNIT;
/// A missing closing fence, or a fence left open, if the content looks like a plan.
pub(super) const DISORDER: Cost = 120 * UNIT;

/// Content that leaves a fence open: code, document.
pub(super) const OPEN_CODE: Cost = 40 * UNIT;
pub(super) const OPEN_DOCUMENT: Cost = 60 * UNIT;
/// The same in a document, if the open fence has no language.
pub(super) const OPEN_BARE: Cost = 40 * UNIT;
/// The same if the outer fence is longer and closed by the rule.
pub(super) const OPEN_SHORTER: Cost = 15 * UNIT;
/// The same in FIND, or in only one of FIND and REPLACE: without a language, with one.
pub(super) const OPEN_EDIT: Cost = 25 * UNIT;
pub(super) const OPEN_EDIT_TAGGED: Cost = 35 * UNIT;
/// The same in a message.
pub(super) const OPEN_MESSAGE: Cost = 10 * UNIT;
/// A FIND without content.
pub(super) const EMPTY_FIND: Cost = 100 * UNIT;

/// An action heading inside an inner fence: of a document, without a language, of another language.
pub(super) const LOOK_DOCUMENT: Cost = 8 * UNIT;
pub(super) const LOOK_BARE: Cost = 45 * UNIT;
pub(super) const LOOK_CODE: Cost = 60 * UNIT;
/// An action heading in a document's block that follows the fence rule.
pub(super) const LOOK_BY_RULE: Cost = 20 * UNIT;
/// The same in code.
pub(super) const LOOK_BY_RULE_IN_CODE: Cost = 40 * UNIT;
/// `## Action Plan` as content: of a document, of a section.
pub(super) const LOOK_PLAN: Cost = 30 * UNIT;
pub(super) const LOOK_PLAN_IN_SECTION: Cost = 70 * UNIT;
/// An action heading as content without `## Action Plan` before it.
pub(super) const LOOK_RAW: Cost = 70 * UNIT;
/// Added if the content is code.
pub(super) const LOOK_IN_CODE: Cost = 50 * UNIT;
/// Another section's heading as content.
pub(super) const LOOK_SECTION: Cost = 5 * UNIT;
/// The same in a section's own block, which that heading more likely ends.
pub(super) const LOOK_SECTION_IN_SECTION: Cost = 45 * UNIT;
/// A label as content of an EDIT.
pub(super) const LOOK_LABEL: Cost = 40 * UNIT;

/// An action as content after a label as content.
pub(super) const LOOK_EDIT: Cost = 60 * UNIT;

/// A surplus fence directly below a closing fence.
pub(super) const SURPLUS_FRESH: Cost = 30 * UNIT;
/// A surplus fence elsewhere.
pub(super) const SURPLUS: Cost = 50 * UNIT;
/// Added for the opening fence of a complete block that the grammar expects.
pub(super) const SURPLUS_OPENER: Cost = 60 * UNIT;
/// A block where none belongs: after stray text, elsewhere.
pub(super) const MISPLACED_BLOCK_AFTER_PROSE: Cost = 20 * UNIT;
pub(super) const MISPLACED_BLOCK: Cost = 60 * UNIT;
/// Text where none belongs.
pub(super) const PROSE: Cost = 40 * UNIT;
/// Text between the title and the first section.
pub(super) const PROSE_IN_HEADER: Cost = 20 * UNIT;
/// A section's heading inside a message.
pub(super) const SECTION_IN_MESSAGE: Cost = 30 * UNIT;

/// A fence around the whole plan.
pub(super) const WRAPPER: Cost = 5 * UNIT;
/// The same with the name of a programming language.
pub(super) const WRAPPER_CODE: Cost = 40 * UNIT;
/// The same without its closing fence.
pub(super) const WRAPPER_OPEN: Cost = 20 * UNIT;
/// A section or an action after the fence around the whole plan: a second plan.
pub(super) const SECOND_PLAN: Cost = 20 * UNIT;
/// Text before the title, `#Title`, a label directly below a list.
pub(super) const TRIFLE: Cost = 5 * UNIT;
pub(super) const TITLE_SKIPPED: Cost = 60 * UNIT;
/// A missing part of the plan without a block.
pub(super) const MISSING: Cost = 60 * UNIT;
/// A missing block or label: no reading fits.
pub(super) const MISSING_BLOCK: Cost = 100 * UNIT;
