//! What each deviation from the plan grammar costs; the cheapest reading wins.
//!
//! The numbers are ranks of likelihood, found by reasoning and tuned on damaged plans. They
//! are part of the format: `docs/formats/repair.md` has them as a table.

/// The sum of what a reading had to assume, in millionths.
pub(super) type Cost = u64;

/// One unit.
pub(super) const UNIT: Cost = 1_000_000;
/// A reading this far ahead of the next one is not in doubt.
pub(super) const MARGIN: Cost = 20 * UNIT;
/// From here on a step is a repair that the user is shown.
pub(super) const REPAIR: Cost = 25 * UNIT;
/// Readings that are worse than the best by more are dropped.
pub(super) const HOPELESS: Cost = 250 * UNIT;

/// An inner fence: among equals the reading with fewer of them wins.
pub(super) const INNER: Cost = 1;
/// An inner fence in a query.
pub(super) const INNER_IN_QUERY: Cost = 40 * UNIT;
/// A closer of an inner fence that is longer than its opener.
pub(super) const INNER_LONGER: Cost = 5 * UNIT;
/// The same, and the closer is long enough for the block.
pub(super) const INNER_CLOSED_BY_RIVAL: Cost = 30 * UNIT;
/// A bare fence as long as an outer one of four or more that opens an inner one.
pub(super) const INNER_RIVAL: Cost = 25 * UNIT;
/// The same of any length, in code.
pub(super) const INNER_RIVAL_IN_CODE: Cost = 15 * UNIT;
/// The same in code, outside of any comment, string or here-document.
pub(super) const INNER_OUTSIDE_OF_SPANS: Cost = 120 * UNIT;
/// A closer in the middle of a comment, a string or a here-document of code.
pub(super) const CLOSED_IN_SPAN: Cost = 60 * UNIT;
/// An inner fence that is closed at another indentation.
pub(super) const INNER_ASKEW: Cost = 3 * UNIT;
/// A fence with a language inside an inner fence of the same length.
pub(super) const NESTED: Cost = 10 * UNIT;
/// The same, taken as text of an inner fence without a language: in a document, in code.
pub(super) const TAGGED_IN_BARE: [Cost; 2] = [25 * UNIT, 30 * UNIT];

/// A closer that is longer than its opener.
pub(super) const LONGER: Cost = 10 * UNIT;
/// A closer that is shorter.
pub(super) const SHORTER: Cost = 40 * UNIT;
/// A closer at another indentation.
pub(super) const ASKEW: Cost = 10 * UNIT;
/// A closer that is indented so far that Markdown takes it for text.
pub(super) const ASKEW_FAR: Cost = 20 * UNIT;
/// A closer of the other character.
pub(super) const OTHER_MARK: Cost = 80 * UNIT;
/// A closer with text behind it that could be a language.
pub(super) const TRAILING_WORD: Cost = 50 * UNIT;
/// A closer with text behind it that could not.
pub(super) const TRAILING_ODD: Cost = 30 * UNIT;
/// The same, and it is shorter too.
pub(super) const SHORTER_TOO: Cost = 15 * UNIT;
/// A fence with text behind it that is taken for content.
pub(super) const ODD_KEPT: Cost = 30 * UNIT;
/// A closer that was forgotten.
pub(super) const FORGOTTEN: Cost = 50 * UNIT;
/// A closer that was forgotten, or a fence left open, in a content that looks like a plan.
pub(super) const DISORDER: Cost = 120 * UNIT;

/// A content that leaves a fence open: code, document.
pub(super) const OPEN_CODE: Cost = 40 * UNIT;
/// See [`OPEN_CODE`].
pub(super) const OPEN_DOCUMENT: Cost = 60 * UNIT;
/// The same in a document, where the open fence has no language.
pub(super) const OPEN_BARE: Cost = 40 * UNIT;
/// The same where the outer fence is longer, and closed by the rule.
pub(super) const OPEN_SHORTER: Cost = 15 * UNIT;
/// The same in FIND, or in one of FIND and REPLACE: without a language, with one.
pub(super) const OPEN_EDIT: Cost = 25 * UNIT;
/// See [`OPEN_EDIT`].
pub(super) const OPEN_EDIT_TAGGED: Cost = 35 * UNIT;
/// The same in a message.
pub(super) const OPEN_MESSAGE: Cost = 10 * UNIT;
/// A FIND without content.
pub(super) const EMPTY_FIND: Cost = 100 * UNIT;

/// An action heading inside an inner fence: of a document, without a language, of another language.
pub(super) const LOOK_DOCUMENT: Cost = 8 * UNIT;
/// See [`LOOK_DOCUMENT`].
pub(super) const LOOK_BARE: Cost = 45 * UNIT;
/// See [`LOOK_DOCUMENT`].
pub(super) const LOOK_CODE: Cost = 60 * UNIT;
/// An action heading in a block that obeys the fence rule: in a document.
pub(super) const LOOK_BY_RULE: Cost = 20 * UNIT;
/// The same in code.
pub(super) const LOOK_BY_RULE_IN_CODE: Cost = 40 * UNIT;
/// `## Action Plan` as content: of a document, of a section.
pub(super) const LOOK_PLAN: Cost = 30 * UNIT;
/// See [`LOOK_PLAN`].
pub(super) const LOOK_PLAN_IN_SECTION: Cost = 70 * UNIT;
/// An action heading as content without `## Action Plan` before it.
pub(super) const LOOK_RAW: Cost = 70 * UNIT;
/// What is added where the content is code.
pub(super) const LOOK_IN_CODE: Cost = 50 * UNIT;
/// Another section's heading as content.
pub(super) const LOOK_SECTION: Cost = 5 * UNIT;
/// The same in a section's own block, which the next section's heading rather ends.
pub(super) const LOOK_SECTION_IN_SECTION: Cost = 45 * UNIT;
/// A label as content of an EDIT.
pub(super) const LOOK_LABEL: Cost = 40 * UNIT;

/// An action as content behind a label as content.
pub(super) const LOOK_EDIT: Cost = 60 * UNIT;

/// A surplus fence right under a closer.
pub(super) const SURPLUS_FRESH: Cost = 30 * UNIT;
/// A surplus fence elsewhere.
pub(super) const SURPLUS: Cost = 50 * UNIT;
/// What is added for the opener of a block that is asked for and whole.
pub(super) const SURPLUS_OPENER: Cost = 60 * UNIT;
/// A block where none belongs: behind stray text, elsewhere.
pub(super) const STRAY_AFTER_PROSE: Cost = 20 * UNIT;
/// See [`STRAY_AFTER_PROSE`].
pub(super) const STRAY: Cost = 60 * UNIT;
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
/// The same without its closer.
pub(super) const WRAPPER_OPEN: Cost = 20 * UNIT;
/// A section or an action behind the fence around the whole plan: a second plan.
pub(super) const SECOND_PLAN: Cost = 20 * UNIT;
/// Words before the title, `#Title`, a label right below a list.
pub(super) const TRIFLE: Cost = 5 * UNIT;
/// A title that is passed over.
pub(super) const TITLE_SKIPPED: Cost = 60 * UNIT;
/// A part of the plan that is missing, but has no block.
pub(super) const MISSING: Cost = 60 * UNIT;
/// A block or a label that is missing: no reading fits.
pub(super) const MISSING_BLOCK: Cost = 100 * UNIT;
