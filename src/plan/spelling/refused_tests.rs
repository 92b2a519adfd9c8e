//! Plans whose text makes an action conditional, strikes it out or presents it as an example. None
//! of these actions runs.

use crate::plan::action::ActionKind;
use crate::plan::reading::{preprocess, read};
use crate::plan::samples::describe;

/// Everything above the actions.
const HEAD: &str = "# T\n\n## Rationale\n```text\nr\n```\n\n## Action Plan\n\n";
const PLAIN: &str = "### `EXECUTE`\n- **Description:** d\n```sh\nls\n```\n\n";

/// Returns what a plan does unattended, one action a line; `None` if it is refused, or waits for a
/// person.
fn run_actions(actions: &str) -> Option<Vec<String>> {
    let reading = read(&format!("{HEAD}{actions}"));
    if reading.repaired.asides().next().is_some() {
        return None;
    }
    let says = || {
        let actions = reading.plan.actions.iter();
        actions.map(|action| describe(&action.kind)).collect()
    };
    reading.diagnostics.is_empty().then(says)
}

fn check_refused<'a>(plans: impl IntoIterator<Item = &'a str>, wrap: impl Fn(&str) -> String) {
    for part in plans {
        let plan = wrap(part);
        assert_eq!(run_actions(&plan), None, "{plan}");
    }
}

#[test]
fn p26_a_heading_that_is_struck_out_or_has_a_condition_is_no_action() {
    let heads = [
        "### ~~EXECUTE~~",
        "### ~~`EXECUTE`~~",
        "**~~EXECUTE~~**",
        "### ❌ EXECUTE",
        "### !EXECUTE",
        "### // EXECUTE",
        "### (EXECUTE)",
        "### EXECUTE (optional)",
        "### EXECUTE - only if the tests fail",
        "### EXECUTE (do not run yet)",
        "### EXECUTE [SKIPPED]",
        "### EXECUTE ✅ (done)",
        "### Run manually",
        "### Run this only if needed",
        "### `EXECUTE` (example)",
    ];
    check_refused(heads, |head| {
        format!("{PLAIN}{head}\n- **Description:** d\n```sh\nrm x\n```\n")
    });
}

#[test]
fn p26_a_block_that_shows_what_a_command_says_is_no_command() {
    let heads = [
        "### Command output",
        "### Run output",
        "### Run-time errors",
        "### Run `make test`",
        "### Run (expected output)",
        "### Research notes",
    ];
    check_refused(heads, |head| format!("{PLAIN}{head}\n```\nrm x\n```\n"));
    check_refused(["text", "json", "output"], |language| {
        format!("{PLAIN}### Run the tests\n```{language}\nok\n```\n")
    });

    let run = "### Run `make test`\n```sh\nmake test -j4\n```\n";
    assert_eq!(
        run_actions(run),
        Some(vec!["EXECUTE \"make test -j4\\n\"".into()])
    );
    let fields = "- **Command:** `make`\n\n#### Expected output\n```\nok\n```\n";
    assert_eq!(run_actions(&format!("### Execute\n{fields}")), None);
}

#[test]
fn p26_a_block_in_the_rationale_is_no_command() {
    let text = "# T\n\n## Rationale\nWe saw this:\n\n### Run\n```\nrm x\n```\n\n### Execute\n- **Description:** d\n```sh\nls\n```\n";
    let reading = read(text);
    let kinds: Vec<String> = reading
        .plan
        .actions
        .iter()
        .map(|a| describe(&a.kind))
        .collect();
    assert_eq!(kinds, ["EXECUTE \"ls\\n\""]);
}

#[test]
fn p26_an_action_that_a_message_proposes_is_not_run() {
    for head in [
        "### Execute",
        "#### Execute",
        "**Run**",
        "#### `EXECUTE`",
        "### `EXECUTE`",
    ] {
        let plan = format!(
            "### `CHAT_WITH_USER`\nI would do this next:\n\n{head}\n- **Description:** d\n```sh\nrm x\n```\n\nShall I go ahead?\n"
        );
        let runs =
            run_actions(&plan).is_some_and(|all| all.iter().any(|one| one.starts_with("EXEC")));
        assert!(!runs, "{plan}");
    }
}

/// Sentences in several languages that say not to run a command, or ask whether to.
const ASIDES: [&str; 20] = [
    "Hold off on this one for now.",
    "Shall I run this?",
    "This one can wait until Monday.",
    "Only after your review, please!",
    "I will leave that to you.",
    "Don't run this yet.",
    "Wait, that deletes too much.",
    "Bitte noch nicht ausführen.",
    "Soll ich das so ausführen?",
    "Ne lancez pas ceci pour le moment.",
    "Dois-je lancer cette commande ?",
    "No ejecutes esto todavía.",
    "¿Lo ejecuto ahora?",
    "Non eseguire ancora questo comando.",
    "Пока не запускайте это.",
    "まだ実行しないでください。",
    "これを実行してもよいですか？",
    "请先不要执行这个命令。",
    "아직 실행하지 마세요.",
    "لا تقم بتشغيل هذا الآن.",
];

/// A command between its heading and its end, with a place for words.
const TEMPLATES: [&str; 12] = [
    "### `EXECUTE`\n- **Description:** d\n\n@\n\n```sh\nrm x\n```\n",
    "### `EXECUTE`\n\n@\n\n- **Description:** d\n```sh\nrm x\n```\n",
    "### `EXECUTE`\n- **Description:** Clean up.\n@\n\n```sh\nrm x\n```\n",
    "### `EXECUTE`\n- **Description:** d\n- **Note:** @\n```sh\nrm x\n```\n",
    "### `EXECUTE`\n- **Description:** d\n```sh\nrm x\n```\n@\n",
    "### `EXECUTE`\n- **Description:** d\n```sh\nrm x\n```\n\n---\n\n> @\n",
    "### `EXECUTE`\n- **Description:** d\n```sh\nrm x\n```\n\n<!-- @ -->\n",
    "### `EXECUTE`\n- **Description:** d\n```sh\nrm x\n```\n\n## Notes\n@\n",
    "### `EXECUTE`\n- **Description:** d\n```sh\nrm x\n```\n\n@\n\n### `READ`\n- **Resource:** a\n",
    "### `EXECUTE` (@)\n- **Description:** d\n```sh\nrm x\n```\n",
    "### EXECUTE: @\n- **Description:** d\n```sh\nrm x\n```\n",
    "### `RESEARCH`\n- **Description:** d\n```\nmyers diff\n```\n\n@\n",
];

#[test]
fn p35_words_beside_a_command_make_the_plan_doubtful_in_every_language() {
    for text in ASIDES {
        for template in TEMPLATES {
            let plan = format!("{HEAD}{}", template.replace('@', text));
            let reading = read(&plan);
            let waits = reading.repaired.asides().next().is_some();
            assert!(waits || !reading.diagnostics.is_empty(), "{plan}");

            // What only repair or the speller would take off stays for a person to see.
            let again = preprocess(&plan);
            assert!(
                again.repaired.text == plan && (!again.is_sure || !waits),
                "{plan}"
            );
        }

        let wrapped = format!(
            "`````markdown\n{HEAD}### `EXECUTE`\n- **Description:** d\n```sh\nrm x\n```\n`````\n\n{text}\n"
        );
        assert!(
            read(&wrapped).repaired.asides().next().is_some(),
            "{wrapped}"
        );
    }
}

#[test]
fn p35_a_reviewed_plan_keeps_its_command_whatever_stands_beside_it() {
    for text in ASIDES {
        let plan = format!("{HEAD}{}", TEMPLATES[4].replace('@', text));
        let reading = read(&plan);
        let kinds: Vec<String> = reading
            .plan
            .actions
            .iter()
            .map(|a| describe(&a.kind))
            .collect();
        assert_eq!(
            (kinds, reading.diagnostics),
            (vec!["EXECUTE \"rm x\\n\"".to_owned()], vec![])
        );
    }
}

#[test]
fn p35_what_a_command_says_of_itself_is_no_word_beside_it() {
    for plan in [
        "### `EXECUTE`\n- **Description:** d\n- **Expected Outcome:** o\n- **Timeout:** 2 minutes\n```sh\nls\n```\n",
        "### Run the tests\n- **Description:** Run the tests.\n```sh\nls\n```\n",
        "### EXECUTE - Run the tests\n- **Description:** Run the tests.\n```sh\nls\n```\n",
        "### `EXECUTE`\n- **Description:** a long one\n  that continues\n```sh\nls\n```\n",
        "### `EXECUTE`\n- **Description:** a long one that\ncontinues\n```sh\nls\n```\n",
        "### `EXECUTE`\n- **Language:** bash\n- **Beschreibung:** Tests.\n```sh\nls\n```\n",
        "### `READ`\n- **Resource:** a\n\nThen we run the tests.\n\n### `EXECUTE`\n- **Description:** d\n```sh\nls\n```\n",
    ] {
        assert!(
            run_actions(plan).is_some(),
            "{plan}: {:?}",
            read(&format!("{HEAD}{plan}"))
        );
    }
}

#[test]
fn p25_only_the_heading_of_the_format_starts_an_action_in_a_message() {
    for text in ASIDES {
        for head in [
            "**EXECUTE**",
            "**EXECUTE:**",
            "**`EXECUTE`**",
            "#### EXECUTE",
            "#### `EXECUTE`",
            "## EXECUTE",
            "### Execute",
            "### Run",
            "### RUN",
            "**Run**",
            "### Step 1: EXECUTE",
            "###EXECUTE",
            "### ⚙️ `EXECUTE`",
            "- **Action:** EXECUTE",
        ] {
            for list in ["- **Description:** d\n", ""] {
                let plan = format!(
                    "{HEAD}### `CHAT_WITH_USER`\n{text}\n\n{head}\n{list}```sh\nrm x\n```\n"
                );
                let reading = read(&plan);
                let mut kinds = reading.plan.actions.iter().map(|action| action.kind.name());
                let runs = kinds.any(|kind| kind == "EXECUTE");
                assert!(!runs || !reading.diagnostics.is_empty(), "{plan}");
            }
        }
    }
}

#[test]
fn p27_a_section_of_examples_or_rejected_actions_is_no_plan() {
    for title in [
        "Example",
        "Rollback",
        "Rejected alternatives",
        "Previous plan",
    ] {
        let text = format!("# T\n\n## Rationale\n```\nr\n```\n\n## {title}\n\n{PLAIN}");
        assert!(!read(&text).diagnostics.is_empty(), "{text}");
    }
}

#[test]
fn p31_a_field_that_is_struck_out_or_not_ticked_is_none() {
    let fields = [
        "- ~~**Overwrite:** true~~",
        "- ❌ **Overwrite:** true",
        "- [ ] **Overwrite:** true",
        "// Overwrite: true",
        "<!-- a --> - **Overwrite:** true <!-- b -->",
        "- **Final Newline:** None",
    ];
    check_refused(fields, |field| {
        format!("### Create\n- **File Path:** a.txt\n{field}\n```\nx\n```\n")
    });

    check_refused(["- ~~**cwd:** src~~", "- **cwd:** .."], |field| {
        format!("### Execute\n- **Description:** d\n{field}\n```sh\nls\n```\n")
    });
    check_refused(["- **cwd:** ~~src~~", "- ~~**cwd:**~~ src"], |field| {
        format!("### Execute\n- **Description:** d\n{field}\n```sh\nls\n```\n")
    });
    let with_cwd = PLAIN.replace("```sh", "- **cwd:** `default`\n```sh");

    assert_eq!(
        run_actions(&with_cwd),
        Some(vec!["EXECUTE \"ls\\n\" in default".into()])
    );
}

#[test]
fn p31_tildes_and_crosses_in_the_text_of_a_field_strike_nothing_out() {
    for value in ["A~~", "from ~~1~~ to 2", "the page shows ❌"] {
        let text = format!(
            "{HEAD}### `EXECUTE`\n**Description:** What it does.\n**Expected Outcome:** {value}\n\n```sh\nls\n```\n"
        );
        let reading = read(&text);
        assert_eq!(reading.diagnostics, vec![], "{text}");
        let ActionKind::Execute(execute) = &reading.plan.actions[0].kind else {
            panic!("{text}");
        };

        assert_eq!(execute.expected_outcome, value);
    }
}

#[test]
fn p32_a_path_is_never_two_and_never_has_its_quotes() {
    let paths = [
        "`a.py` and `b.py`",
        "~~a.py~~",
        "\"/a.py\"",
        "[/workspace/a.py](/workspace/a.py)",
    ];
    check_refused(paths, |path| {
        format!("### `CREATE`\n- **File Path:** {path}\n```\nx\n```\n")
    });
    for path in ["*src/a.py*", "***src/a.py***", "`\"src/a.py\"`"] {
        let plan = format!("### `READ`\n- **Resource:** {path}\n");
        let expected = (!path.starts_with('`')).then(|| vec!["READ src/a.py".to_owned()]);
        assert_eq!(run_actions(&plan), expected, "{path}");
    }
}

#[test]
fn p33_words_about_a_command_are_none() {
    let fields = [
        "- **Command:** run `make test` and check",
        "- **Command:** Run the test suite",
        "- **Command:** None",
        "- **Command:** `rm -rf ./",
        "- **Command:** rm -rf ./",
        "- **Command:** `a` or `b`",
        "- **Command:** see above",
        "Command: make &&\nmake test",
        "Command: `make`\n&& make test",
    ];
    check_refused(fields, |field| {
        format!("### Execute\n{field}\n- **Description:** d\n")
    });
    check_refused(fields, |field| {
        format!("### EXECUTE\n- **Description:** d\n\n{field}\n")
    });
}

#[test]
fn p34_a_label_that_shows_something_or_asks_for_another_search_is_none() {
    let pair = "`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n```\n\n";
    let edit = |find: &str, replace: &str| {
        format!(
            "### `EDIT`\n- **File Path:** a.py\n\n{pair}{find}\n```\nhi\n```\n{replace}\n```\nHello\n```\n"
        )
    };
    for (find, replace) in [
        ("**Before:**", "**After:**"),
        ("#### Old output", "#### New output"),
        ("~~FIND~~", "~~REPLACE~~"),
        ("FIND (all occurrences):", "REPLACE:"),
        ("FIND (regex)", "REPLACE"),
        ("Find (example):", "Replace (do not apply):"),
    ] {
        let plan = edit(find, replace);
        assert_eq!(run_actions(&plan), None, "{plan}");
    }
}

#[test]
fn promise_a2_a_plan_in_any_spelling_that_was_cut_off_is_not_run() {
    let command = "### Run\n- **Command:** `rm -rf build`\n";
    for suffix in [
        "- **cwd:",
        "- **cwd:**",
        "- **cwd:** su",
        "cwd: sub/d",
        "- Timeout: 1",
    ] {
        assert_eq!(run_actions(&format!("{command}{suffix}")), None, "{suffix}");
    }

    let complete = format!("{command}- **cwd:** `sub/dir`");
    assert_eq!(
        run_actions(&complete),
        Some(vec!["EXECUTE \"rm -rf build\\n\" in sub/dir".into()])
    );
    assert_eq!(run_actions(&format!("{PLAIN}Now we chan")), None);

    for tag in ["plan", "response", "think"] {
        let opened = read(&format!("<{tag}>\n{HEAD}{PLAIN}"));
        assert!(!opened.diagnostics.is_empty(), "{opened:?}");
        let reading = read(&format!("<{tag}>\n{HEAD}{PLAIN}</{tag}>\n"));
        assert_eq!(
            reading.diagnostics.is_empty(),
            tag != "think",
            "{reading:?}"
        );
    }
}

#[test]
fn rp16_a_sentence_in_front_of_a_missing_closer_is_not_written_into_code() {
    for head in ["### Create a.py", "### `CREATE`\n- **File Path:** a.py"] {
        let open = format!("{head}\n```python\nx = 1\n");
        assert_eq!(
            run_actions(&format!("{open}\nNow we run the tests.\n\n{PLAIN}")),
            None
        );
        assert!(run_actions(&format!("{open}\ny = 2\n\n{PLAIN}")).is_some());
    }
}

#[test]
fn p35_words_that_say_when_an_action_is_done_are_not_left_out() {
    let texts = [
        "Only if the above fails, run this instead:",
        "Do not run this one:",
        "**Option A: minimal change**",
        "Alternatively, we could do this:",
        "Otherwise, revert everything.",
        "Here is an example of what not to do:",
        "> Note: the next action is optional.",
        "Wait, that would delete too much. Let me redo this.",
        "**Ask user**\nI would do this next:",
        "<del>",
        "<example>",
        "<rejected_plan>",
        "<div hidden>",
        "<details>\n<summary>Rejected alternative</summary>",
    ];
    check_refused(texts, |text| format!("{PLAIN}{text}\n\n{PLAIN}"));
    check_refused(["This should print:", "Expected output:"], |text| {
        format!("### `EXECUTE`\n- **Description:** d\n\n{text}\n\n```sh\nls\n```\n")
    });

    check_refused(
        ["Please don't run this yet.", "Wait, that is wrong."],
        |text| format!("{PLAIN}{text}\n"),
    );
}

/// Bug: `## Action Plan` was put below the actions that an open fence of the rationale covers.
#[test]
fn p28_a_rationale_that_covers_an_action_is_not_put_into_a_block() {
    let edit = "### `EDIT`\n- **File Path:** [r.md](/r.md)\n\n`FIND:`\n```\nmake\n```\n`REPLACE:`\n```\nmake all\n```\n```\n\n";
    let create = "### `CREATE`\n- **File Path:** [two.txt](/two.txt)\n```\ntwo\n```\n";
    for end in ["", "~~~\n", "``` end\n", "``\n"] {
        for plan in ["## Action Plan\n\n", "## Actions\n\n", ""] {
            for ending in ["\n", "\r\n"] {
                let read_action = "### `READ`\n- **Resource:** r.md\n\n";
                let plain = PLAIN.replace("### `EXECUTE`", "#### Execute");
                let free = edit.replace("### `EDIT`", "### Edit");
                for first in [read_action, PLAIN, edit, &plain, &free] {
                    let text =
                        format!("# T\n\n## Rationale\n```text\nx\n{end}\n{plan}{first}{create}");
                    let reading = read(&text.replace('\n', ending));
                    let is_whole = reading.plan.actions.len() > 1;
                    assert!(is_whole || !reading.diagnostics.is_empty(), "{text}");
                }
            }
        }
    }
}

/// Bug: only a few English words above a command counted.
#[test]
fn p42_words_above_a_command_that_do_not_announce_it_are_for_a_person() {
    let create = "### `CREATE`\n- **File Path:** [two.txt](/two.txt)\n```\ntwo\n```\n";
    let texts = [
        "The command below is dangerous and must never be executed.",
        "Ignore the following action.",
        "I have decided against the following step.",
        "Later, when it is merged:",
        "I already ran this one.",
        "In the next turn I will run:",
        "Next turn:",
        "Unused draft below.",
        "Reverting would look like this:",
        "These steps are only for documentation.",
        "<!-- disabled -->",
        "Nur falls nötig:",
        "以下仅为示例。",
        "Now run the tests. Nicht ausführen.",
        "Here is what you must avoid:",
        "This deletes everything, please abort.",
        "To be run by the user:",
        "Then you run:",
        "Run this tomorrow:",
        "Next week:",
        "Let's drop this step.",
        "[//]: # (Do not run the command below)",
    ];
    check_refused(texts, |text| format!("{create}\n{text}\n\n{PLAIN}"));
    check_refused(texts, |text| format!("{text}\n\n{PLAIN}"));
    let announced = [
        "Now run the tests:",
        "Next, we build it.",
        "I'll verify the change with the linter.",
        "To make sure that it compiles, run the build.",
        "Finally, check the result.",
        "Then we run the tests.",
        "Finally, verify that there are no type errors.",
        "Now run the tests again after the change. Build it.",
        "Step 2: Run the tests once more.",
    ];
    for text in announced {
        let plan = format!("{create}\n{text}\n\n{PLAIN}");
        assert!(run_actions(&plan).is_some(), "{text}");
    }
}

/// Bug: both fences were dropped, and the command ran.
#[test]
fn rp8_an_action_that_a_block_shows_is_in_doubt() {
    let create = "### `CREATE`\n- **File Path:** [two.txt](/two.txt)\n```\ntwo\n```\n\n";
    let edit = "### `EDIT`\n- **File Path:** [r.md](/r.md)\n\n`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n```\n\n";
    for first in ["", PLAIN, create, edit] {
        for fence in ["~~~", "~~~~", "````", "`````"] {
            let plan = format!("{first}{fence}\n{PLAIN}{fence}\n");
            assert_eq!(run_actions(&plan), None, "{plan}");
        }
    }
}

/// Bug: without a mark between them, the words were taken for a title.
#[test]
fn p42_words_behind_the_name_of_a_command_are_for_a_person() {
    let heads = [
        "### EXECUTE after the user agreed",
        "### EXECUTE (after merge)",
        "### EXECUTE in the next turn",
        "### EXECUTE nur im Notfall",
        "### EXECUTE 仅示例",
        "### 1. EXECUTE after merge",
        "#### EXECUTE after merge",
        "### Run in production",
        "### Run (after merge)",
        "### Execute nicht",
        "### Run только на сервере",
        "### Run the migration tomorrow",
        "### Run the tests after approval",
        "### Run the deployment (after merge)",
    ];
    check_refused(heads, |head| PLAIN.replace("### `EXECUTE`", head));
    for head in ["### Run the tests", "### Run ls"] {
        let titled = PLAIN.replace("### `EXECUTE`", head);
        assert!(run_actions(&titled).is_some(), "{titled}");
    }
}
