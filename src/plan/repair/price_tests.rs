//! Checks that the costs in the document match the code.

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn rp5_the_prices_of_the_document_are_those_of_the_code() {
    use super::cost;

    let page = include_str!("../../../docs/formats/repair.md");
    let rows = [
        ("closer longer than its opener", vec![cost::LONGER]),
        (
            "closer at another indentation / by four columns or more",
            vec![cost::ASKEW, cost::ASKEW_FAR],
        ),
        ("closer shorter", vec![cost::SHORTER]),
        (
            "text behind a closer: no language / could be one",
            vec![cost::TRAILING_ODD, cost::TRAILING_WORD],
        ),
        (
            "the first of them, and shorter too, on top of it",
            vec![cost::SHORTER_TOO],
        ),
        ("closer of the other character", vec![cost::OTHER_MARK]),
        ("closer missing", vec![cost::FORGOTTEN]),
        ("fence with text behind it as content", vec![cost::ODD_KEPT]),
        (
            "inner fence in an inner one of its length",
            vec![cost::NESTED],
        ),
        (
            "the same in a bare one: document / code",
            cost::TAGGED_IN_BARE.to_vec(),
        ),
        (
            "bare inner fence as long as an outer one of 4 or more",
            vec![cost::INNER_RIVAL],
        ),
        (
            "bare inner fence that could close, in code",
            vec![cost::INNER_RIVAL_IN_CODE],
        ),
        (
            "inner closer longer / long enough for the block too",
            vec![cost::INNER_LONGER, cost::INNER_CLOSED_BY_RIVAL],
        ),
        (
            "inner closer at another indentation",
            vec![cost::INNER_ASKEW],
        ),
        ("inner fence in a query", vec![cost::INNER_IN_QUERY]),
        (
            "another section's heading as content / in a section's block",
            vec![cost::LOOK_SECTION, cost::LOOK_SECTION_IN_SECTION],
        ),
        (
            "fence around the plan / with a language of code",
            vec![cost::WRAPPER, cost::WRAPPER_CODE],
        ),
        (
            "words before the title, `#Title`, label below a list",
            vec![cost::TRIFLE],
        ),
        (
            "content leaves a fence with a language open: document / code",
            vec![cost::OPEN_DOCUMENT, cost::OPEN_CODE],
        ),
        (
            "content leaves a bare fence open, in a document",
            vec![cost::OPEN_BARE],
        ),
        (
            "the same in FIND or REPLACE: bare / with a language",
            vec![cost::OPEN_EDIT, cost::OPEN_EDIT_TAGGED],
        ),
        (
            "the same, outer fence longer and properly closed",
            vec![cost::OPEN_SHORTER],
        ),
        ("the same in a message", vec![cost::OPEN_MESSAGE]),
        ("FIND without content", vec![cost::EMPTY_FIND]),
        (
            "surplus fence: right below a closer / elsewhere",
            vec![cost::SURPLUS_FRESH, cost::SURPLUS],
        ),
        ("text where none belongs", vec![cost::PROSE]),
        (
            "block where none belongs: behind such text / elsewhere",
            vec![cost::MISPLACED_BLOCK_AFTER_PROSE, cost::MISPLACED_BLOCK],
        ),
        (
            "action as content: in a document's fence / bare / other",
            vec![cost::LOOK_DOCUMENT, cost::LOOK_BARE, cost::LOOK_CODE],
        ),
        (
            "`## Action Plan` as content / in a section",
            vec![cost::LOOK_PLAN, cost::LOOK_PLAN_IN_SECTION],
        ),
        (
            "action as content without it / in code",
            vec![cost::LOOK_RAW, cost::LOOK_RAW + cost::LOOK_IN_CODE],
        ),
        (
            "label as content of EDIT / an action behind it",
            vec![cost::LOOK_LABEL, cost::LOOK_EDIT],
        ),
        (
            "action in a block by the rule: document / code",
            vec![cost::LOOK_BY_RULE, cost::LOOK_BY_RULE_IN_CODE],
        ),
        (
            "surplus fence that opens a whole block, on top of it",
            vec![cost::SURPLUS_OPENER],
        ),
        (
            "bare inner fence that could close, in code, outside of what spans lines (RP14), on top of it",
            vec![cost::INNER_OUTSIDE_OF_SPANS],
        ),
        (
            "closer in what spans lines of code",
            vec![cost::CLOSED_IN_SPAN],
        ),
        ("metadata or a section missing", vec![cost::MISSING]),
        (
            "block or label missing (hopeless)",
            vec![cost::MISSING_BLOCK],
        ),
        (
            "plan behind the fence around the plan",
            vec![cost::SECOND_PLAN],
        ),
    ];
    for (event, prices) in rows {
        let prices: Vec<String> = prices
            .iter()
            .map(|price| (price / cost::UNIT).to_string())
            .collect();
        assert!(
            page.contains(&format!("| {event} | {} |", prices.join(" / "))),
            "{event}: {}",
            prices.join(" / ")
        );
    }
}
