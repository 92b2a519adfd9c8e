//! Tests repair on plans with systematic damage.
//!
//! A plan is built from known contents, and its fences are damaged as models damage them. After
//! repair, the parser, which reads by CommonMark and knows nothing about repair, must find exactly the
//! original actions and bytes.

mod corpus;
mod plan;
mod remarks;

use super::{Level, repair};
use crate::plan::samples::describe;
use crate::plan::{Plan, parse, reading};
use corpus::{Corpus, Dice};
use plan::{ALL, Damage, DamagedPlan, SLIPS};

#[derive(Debug, Default)]
struct Tally {
    pub all: usize,
    /// Plans that read exactly as intended.
    pub exact: usize,
    pub wrong: Vec<Wrong>,
}

#[derive(Debug)]
struct Wrong {
    pub damages: Vec<Damage>,
    pub text: String,
    pub level: Level,
    /// Accepted without doubt, although the meaning changed.
    pub silent: bool,
}

/// Damages and repairs `rounds` plans.
fn tally(corpus: &Corpus, dice: &mut Dice, iterations: usize) -> Tally {
    let mut tally = Tally::default();
    for round in 0..iterations {
        let mut plan = DamagedPlan::new(corpus, dice);
        let mut damages = vec![ALL[round % ALL.len()]];
        damages.extend((0..dice.roll(2) * dice.roll(4)).map(|_| ALL[dice.roll(ALL.len())]));
        let text = plan.damaged(&damages, dice);
        let repaired = repair(&text);

        tally.all += 1;
        let actions = parsed(&repaired.text);
        if actions.as_ref() == Some(&plan.actions) {
            tally.exact += 1;
        } else {
            let silent = repaired.level < Level::Doubtful && actions.is_some();
            tally.wrong.push(Wrong {
                damages,
                text,
                level: repaired.level,
                silent,
            });
        }
    }

    tally
}

/// Describes the actions of a plan, ignoring line endings.
fn described(plan: &Plan) -> Vec<String> {
    let actions = plan.actions.iter();
    actions
        .map(|action| describe(&action.kind).replace("\\r\\n", "\\n"))
        .collect()
}

/// Returns the actions of a text; `None` if it has a mistake.
fn parsed(text: &str) -> Option<Vec<String>> {
    let (plan, wrong) = parse(text);
    wrong.is_empty().then(|| described(&plan))
}

#[test]
fn damaged_plans_come_back_as_they_were_meant_and_never_silently_otherwise() {
    let mut dice = Dice(0x7EDD_9000_0000_0001);
    let corpus = Corpus::own(&mut dice);
    let tally = tally(&corpus, &mut dice, 520);
    let silent: Vec<_> = tally.wrong.iter().filter(|wrong| wrong.silent).collect();
    assert!(
        silent.is_empty(),
        "{} silently wrong: {:?}, {:?}\n{}",
        silent.len(),
        silent[0].damages,
        silent[0].level,
        silent[0].text
    );

    assert!(
        tally.exact * 100 >= tally.all * 97,
        "{} of {} exact",
        tally.exact,
        tally.all
    );
}

#[test]
fn plans_by_the_rule_come_back_byte_for_byte() {
    let mut dice = Dice(0x7EDD_9000_0000_0002);
    let corpus = Corpus::own(&mut dice);
    for _ in 0..300 {
        let plan = DamagedPlan::new(&corpus, &mut dice);
        let text = plan.text();
        let repaired = repair(&text);
        assert_eq!(
            (repaired.text.as_str(), repaired.level),
            (text.as_str(), Level::Clean)
        );

        assert_eq!(parsed(&text), Some(plan.actions));
    }
}

#[test]
fn rp17_a_plan_that_is_cut_off_is_read_as_whole_actions_or_not_at_all() {
    let mut dice = Dice(0x7EDD_9000_0000_0004);
    let corpus = Corpus::own(&mut dice);
    for _ in 0..12 {
        let plan = DamagedPlan::new(&corpus, &mut dice);
        let text = plan.text();
        let ends: Vec<usize> = text.char_indices().map(|(end, _)| end).collect();
        for _ in 0..20 {
            let end = ends[dice.roll(ends.len())];
            // A program that prints an answer can terminate its last line.
            let cut = [&text[..end], dice.pick(&["", "\n"])].concat();
            let read = reading::read(&cut);
            let actions = parsed(&read.repaired.text).unwrap_or_default();
            assert!(
                !read.diagnostics.is_empty() || plan.actions.starts_with(&actions),
                "{:?}\n{cut}",
                read.repaired
            );
        }
    }
}

#[test]
fn rp16_a_closer_that_is_invented_beside_a_line_that_is_nearly_one_is_in_doubt() {
    let mut dice = Dice(0x7EDD_9000_0000_0005);
    let corpus = Corpus::own(&mut dice);
    for round in 0..210 {
        let mut plan = DamagedPlan::new(&corpus, &mut dice);
        let slip = SLIPS[round % SLIPS.len()];
        let text = plan.damaged(&[slip], &mut dice);
        let read = reading::read(&text);
        assert!(
            !read.diagnostics.is_empty() || described(&read.plan) == plan.actions,
            "{slip:?}, {:?}: {:?}\n{text}",
            read.repaired.level,
            read.repaired.notes
        );
    }
}

#[test]
fn promise_d10_no_spelling_makes_a_damaged_plan_mean_something_else() {
    let mut dice = Dice(0x7EDD_9000_0000_0003);
    let corpus = Corpus::own(&mut dice);
    let (mut all, mut read) = (0, 0);
    for round in 0..520 {
        let mut plan = DamagedPlan::new(&corpus, &mut dice);
        let mut damages = vec![ALL[round % ALL.len()]];
        damages.extend((0..dice.roll(2)).map(|_| ALL[dice.roll(ALL.len())]));
        plan.respell(|text| spelled(text, &mut dice));
        let text = plan.damaged(&damages, &mut dice);

        all += 1;
        let reading = reading::read(&text);
        if !reading.diagnostics.is_empty() {
            continue;
        }
        read += 1;
        assert_eq!(
            described(&reading.plan),
            plan.actions,
            "{damages:?}\n{text}"
        );
    }

    // Doubtful replies (such as those with an almost correct closing fence) are rejected in any
    // spelling.
    assert!(read * 100 >= all * 88, "{read} of {all}");
}

/// Respells a plan like a model that follows no convention.
fn spelled(text: &str, dice: &mut Dice) -> String {
    let spellings = [
        (
            "### `CREATE`",
            ["### Create", "### Step 1: CREATE", "#### 📄 CREATE"],
        ),
        (
            "### `EDIT`",
            ["### Edit", "### Step 2 - EDIT", "#### ✏️ `EDIT`"],
        ),
        (
            "### `EXECUTE`",
            ["### Execute", "### Run the tests", "#### RUN"],
        ),
        (
            "- **File Path:**",
            ["- **Path:**", "**File Path:**", "- File:"],
        ),
        (
            "## Action Plan",
            ["## 🚀 Action Plan", "## Steps", "## Aktionsplan"],
        ),
        ("`FIND:`", ["**Find:**", "Search:", "#### FIND"]),
        (
            "`REPLACE:`",
            ["**Replace:**", "Replace with:", "#### REPLACE"],
        ),
    ];
    spellings
        .iter()
        .fold(text.to_owned(), |text, (own, others)| {
            text.replace(&format!("\n{own}"), &format!("\n{}", dice.pick(others)))
        })
}
