//! CREATE and EDIT: obstacles, matches, suggestions.

use super::*;
use crate::plan::diagnostic::{Diagnostic, MAX_MISTAKES};

#[test]
fn a_file_is_created_where_nothing_is() {
    check(
        vec![
            create("src/new/c.rs", "x\n"),
            create("empty.txt", "now full\n"),
        ],
        "",
    );
    check(
        vec![create("README.md", "x\n")],
        "10 CREATE README.md: `README.md` already exists (change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole)",
    );
    check(
        vec![create("src", "x\n")],
        "10 CREATE src: `src` is a directory (choose another path)",
    );
    check(
        vec![create("README.md/x", "x\n")],
        "10 CREATE README.md/x: `README.md/x` is below `README.md`, which is a file (choose another path)",
    );
    check(
        vec![create("link/x", "x\n")],
        "10 CREATE link/x: `link/x` is below `link`, which is a symbolic link (choose another path)",
    );
    check(
        vec![create("link", "x\n")],
        "10 CREATE link: `link` is a symbolic link (choose another path)",
    );
    check(
        vec![create("vendor/x", "x\n")],
        "10 CREATE vendor/x: `vendor/x` is below `vendor`, which is a repository of its own (choose another path)",
    );

    check(
        vec![create("huge.csv", "x\n")],
        "10 CREATE huge.csv: `huge.csv` is left out of the snapshot: too large, a secret, or unreadable (choose another path)",
    );
}

#[test]
fn an_overwrite_replaces_a_file_as_a_whole() {
    let mut kind = create("hidden.rs", "new\n");
    if let ActionKind::Create(create) = &mut kind {
        create.overwrite = true;
    }

    let simulation = validate(&plan(vec![kind]), &snapshot()).expect("the snapshot can be read");
    assert_eq!(simulation.diagnostics, []);
    assert_eq!(
        simulation.steps[0].before.as_deref(),
        Some(&b"secret\n"[..])
    );
    assert_eq!(simulation.steps[0].after.as_deref(), Some(&b"new\n"[..]));

    assert!(simulation.steps[0].outside_context);
}

#[test]
fn one_path_is_created_once() {
    check(
        vec![create("c", "x\n"), create("c", "y\n")],
        "20 CREATE c: `c` is created twice (keep one CREATE; change the new file in it, or with an EDIT)",
    );
    check(
        vec![create("d", "x\n"), create("d/e", "y\n")],
        "20 CREATE d/e: `d/e` is below `d`, which is a file (choose another path)",
    );
    check(
        vec![create("d/e", "x\n"), create("d", "y\n")],
        "20 CREATE d: `d` is a directory (choose another path)",
    );
}

#[test]
fn names_that_differ_in_case_alone_are_one_name() {
    check(
        vec![create("readme.md", "x\n")],
        "10 CREATE readme.md: `readme.md` is the same name as `README.md` for some file systems (choose another name)",
    );
    check(
        vec![create("SRC/new.rs", "x\n")],
        "10 CREATE SRC/new.rs: `SRC` is the same name as `src` for some file systems (spell the directory as it is)",
    );
    check(
        vec![create("readme.md/new.rs", "x\n")],
        "10 CREATE readme.md/new.rs: `readme.md` is the same name as `README.md` for some file systems (spell the directory as it is)",
    );
    check(
        vec![create("caf\u{e9}", "x\n"), create("cafe\u{301}", "x\n")],
        "20 CREATE cafe\u{301}: `cafe\u{301}` is the same name as `caf\u{e9}` for some file systems (choose another name)",
    );

    check(
        vec![create("src/new.rs", "x\n"), create("src/NEW2.rs", "x\n")],
        "",
    );
}

#[test]
fn an_edit_needs_a_text_file_of_the_context() {
    check(
        vec![edit("nope.rs", &[("a\n", "b\n")])],
        "10 EDIT nope.rs: there is no file `nope.rs` (use CREATE for a new file)",
    );
    check(
        vec![edit("lib/A.rs", &[("a\n", "b\n")])],
        "10 EDIT lib/A.rs: there is no file `lib/A.rs` (there is `src/a.rs`)",
    );
    check(
        vec![edit("src", &[("a\n", "b\n")])],
        "10 EDIT src: `src` is a directory (EDIT changes text files of the project only)",
    );
    check(
        vec![edit("link", &[("a\n", "b\n")])],
        "10 EDIT link: `link` is a symbolic link (EDIT changes text files of the project only)",
    );
    check(
        vec![edit("vendor", &[("a\n", "b\n")])],
        "10 EDIT vendor: `vendor` is a repository of its own (EDIT changes text files of the project only)",
    );
    check(
        vec![edit("bin.dat", &[("a\n", "b\n")])],
        "10 EDIT bin.dat: `bin.dat` is binary (change it with EXECUTE)",
    );
    check(
        vec![edit("latin.txt", &[("a\n", "b\n")])],
        "10 EDIT latin.txt: `latin.txt` is not UTF-8 (change it with EXECUTE)",
    );

    check(
        vec![edit("hidden.rs", &[("secret\n", "b\n")])],
        "10 EDIT hidden.rs: `hidden.rs` is in no context list (READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /hidden.rs` adds it)",
    );
}

#[test]
fn every_wrong_pair_is_reported_and_the_right_ones_are_named() {
    check(
        vec![edit("src/a.rs", &[("one\n", "1\n"), ("Bad1\n", "x\n"), ("three\n", "3\n"), ("Bad2\n", "x\n")])],
        "2 EDIT src/a.rs: FIND 2 of 4 is not in `src/a.rs`
no place in the file is like it (copy the lines to change from the file as they are, including spaces; pairs 1 and 3 of 4 fit, repeat them as they are)
4 EDIT src/a.rs: FIND 4 of 4 is not in `src/a.rs`
no place in the file is like it (copy the lines to change from the file as they are, including spaces)",
    );
}

#[test]
fn a_find_sees_what_the_pairs_above_it_did() {
    check(
        vec![edit(
            "src/a.rs",
            &[("one\n", "uno\n"), ("uno\ntwo\n", "x\n")],
        )],
        "",
    );
    check(
        vec![edit("src/a.rs", &[("one\n", "two\n"), ("two\n", "x\n")])],
        "2 EDIT src/a.rs: FIND 2 of 2 occurs in 2 places in `src/a.rs`: lines 1, 2
  line 1 is the first
  line 2 is below `two` (repeat enough of the lines around the right place in FIND and REPLACE that only this place has them; pair 1 of 2 fits, repeat it as it is)",
    );
    check(
        vec![
            edit("src/a.rs", &[("two\n", "")]),
            edit("src/a.rs", &[("one\nthree\n", "x\n")]),
        ],
        "",
    );
}

#[test]
fn a_pair_that_rests_on_a_failed_one_is_no_mistake_of_its_own() {
    check(
        vec![edit("src/a.rs", &[("missing entirely\n", "new text\nmore\n"), ("new text\n", "x\n")])],
        "1 EDIT src/a.rs: FIND 1 of 2 is not in `src/a.rs`
no place in the file is like it (copy the lines to change from the file as they are, including spaces)",
    );
}

#[test]
fn no_more_pairs_that_fail_are_explained_than_are_shown() {
    let texts: Vec<(String, String)> = (0..600)
        .map(|n| (format!("missing {n};\n"), format!("lost {n};\n")))
        .collect();
    let pairs: Vec<(&str, &str)> = texts
        .iter()
        .map(|(find, replace)| (find.as_str(), replace.as_str()))
        .collect();
    let plan = plan(vec![edit("src/a.rs", &pairs)]);
    let all = crate::plan::validate::validate_actions(&plan, &snapshot())
        .expect("the snapshot is there")
        .simulation;
    let is_short = |wrong: &&Diagnostic| wrong.message.ends_with("does not fit");
    let short = all.diagnostics.iter().filter(is_short).count();
    assert_eq!((all.diagnostics.len(), short), (600, 600 - MAX_MISTAKES));

    let simulation = validate(&plan, &snapshot()).expect("the snapshot is there");
    assert_eq!(simulation.diagnostics.len(), MAX_MISTAKES + 1);
    assert_eq!(simulation.diagnostics.iter().filter(is_short).count(), 0);
}

#[test]
fn blank_and_equal_pairs_are_mistakes_even_without_the_file() {
    check(
        vec![edit("src/a.rs", &[("\n", "x\n"), ("one\n", "one\n")])],
        "1 EDIT src/a.rs: FIND 1 of 2 is blank (FIND names the lines to change; to add lines, repeat a line next to them in FIND and in REPLACE)
2 EDIT src/a.rs: FIND 2 of 2 and its REPLACE are equal (leave the pair out, or write what should be there into REPLACE)",
    );
    check(
        vec![execute("make gen"), edit("gen.rs", &[("a\n", "a\n")])],
        "1 EDIT gen.rs: FIND and its REPLACE are equal (leave the pair out, or write what should be there into REPLACE)
action 2 is provisional and wrong",
    );
}

#[test]
fn the_text_of_a_find_is_pointed_at_in_another_file() {
    check(
        vec![edit("src/a.rs", &[("let moved = here();\n", "x\n")])],
        "1 EDIT src/a.rs: FIND is not in `src/a.rs`
no place in the file is like it
the text is in `src/b.rs`, at line 1 (name the file that the text is in, if that is the one to change)",
    );
}

#[test]
fn steps_hold_the_files_before_and_after_and_right_actions_are_named() {
    let plan = plan(vec![
        edit("src/a.rs", &[("one\n", "1\n"), ("two\n", "2\n")]),
        create("README.md", "x\n"),
        edit("src/a.rs", &[("2\n", "")]),
    ]);
    let simulation = validate(&plan, &snapshot()).expect("the snapshot can be read");
    let text = |bytes: &Option<Vec<u8>>| {
        bytes
            .as_ref()
            .map(|b| String::from_utf8_lossy(b).into_owned())
    };

    assert_eq!(
        text(&simulation.steps[0].before).as_deref(),
        Some("one\ntwo\nthree\n")
    );
    assert_eq!(
        text(&simulation.steps[0].after).as_deref(),
        Some("1\n2\nthree\n")
    );
    assert_eq!(
        text(&simulation.steps[2].before).as_deref(),
        Some("1\n2\nthree\n")
    );
    assert_eq!(
        text(&simulation.steps[2].after).as_deref(),
        Some("1\nthree\n")
    );
    assert_eq!(simulation.steps[1].after, None);
    assert_eq!(
        simulation.steps[0]
            .positions
            .iter()
            .map(|(n, p)| (*n, p.line))
            .collect::<Vec<_>>(),
        [(0, 1), (1, 2)]
    );

    assert_eq!(
        simulation.correct_actions(&plan),
        ["EDIT src/a.rs", "EDIT src/a.rs"]
    );
}
