//! What is wrong with a plan, and what is not.

use std::collections::BTreeMap;

use super::*;
use crate::plan::action::{
    chat_with_user::ChatWithUser, conclude::Conclude, create::Create, edit::Edit, edit::Pair, execute::Execute, invoke::Invoke,
    prune::Prune, read::Read,
};
use crate::plan::memo::{Change, Verb};

/// A snapshot in memory.
struct Snapshot {
    /// What is where.
    entries: BTreeMap<&'static str, Entry>,
    /// The long-term memory.
    memos: Vec<String>,
    /// Whether an agent waits.
    caller: bool,
}

impl Facts for Snapshot {
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry> {
        let above = path.ancestors().filter_map(|a| self.entries.get(a)).find(|e| !matches!(e, Entry::Folder));
        let folder = format!("{path}/");
        let inside = self.entries.keys().any(|p| p.starts_with(&folder));
        let found = above.or_else(|| self.entries.get(path.as_str())).cloned();
        Ok(found.unwrap_or(if inside { Entry::Folder } else { Entry::Absent }))
    }

    fn paths(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.entries.keys().map(|p| (*p).to_owned()).collect())
    }

    fn in_context(&self, resource: &Resource) -> bool {
        !resource.to_string().contains("hidden")
    }

    fn in_turn_context(&self, resource: &Resource) -> bool {
        resource.to_string() == "src/a.rs"
    }

    fn memos(&self) -> &[String] {
        &self.memos
    }

    fn agents(&self) -> BTreeSet<String> {
        ["architect", "developer"].map(str::to_owned).into()
    }

    fn has_caller(&self) -> bool {
        self.caller
    }

    fn has_artifact(&self, resource: &Resource) -> bool {
        resource.to_string() == ".teddy/demo/01/report.md"
    }
}

/// Returns the project that every test starts from.
fn snapshot() -> Snapshot {
    let file = |text: &str| Entry::File { bytes: text.as_bytes().to_vec() };
    let entries = [
        ("README.md", file("hello\n")),
        ("bin.dat", file("a\0b")),
        ("empty.txt", file("")),
        ("hidden.rs", file("secret\n")),
        ("latin.txt", Entry::File { bytes: b"caf\xe9\n".to_vec() }),
        ("link", Entry::Link),
        ("huge.csv", Entry::LeftOut),
        ("src/a.rs", file("one\ntwo\nthree\n")),
        ("src/b.rs", file("let moved = here();\n")),
        ("vendor", Entry::Repository),
    ];
    Snapshot { entries: entries.into(), memos: vec!["Use pnpm.".to_owned()], caller: false }
}

/// Returns a path.
fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).expect("the tests name plain paths")
}

/// Returns a CREATE.
fn create(to: &str, content: &str) -> Kind {
    Kind::Create(Create { path: path(to), content: content.to_owned(), language: String::new(), overwrite: false })
}

/// Returns an EDIT; its pairs are at lines 1, 2, and so on.
fn edit(to: &str, pairs: &[(&str, &str)]) -> Kind {
    let pair = |(n, (find, replace)): (usize, &(&str, &str))| Pair {
        line: n + 1,
        find: (*find).to_owned(),
        replace: (*replace).to_owned(),
        language: String::new(),
    };
    Kind::Edit(Edit { path: path(to), pairs: pairs.iter().enumerate().map(pair).collect() })
}

/// Returns an EXECUTE.
fn execute(command: &str) -> Execute {
    Execute {
        command: command.to_owned(),
        language: String::new(),
        cwd: None,
        env: Vec::new(),
        expected_outcome: String::new(),
        allow_failure: false,
        timeout: None,
    }
}

/// Returns a READ.
fn read(what: &str) -> Kind {
    Kind::Read(Read { resource: Resource::parse(what).expect("a plain resource") })
}

/// Returns a PRUNE.
fn prune(what: &str) -> Kind {
    Kind::Prune(Prune { resource: Resource::parse(what).expect("a plain resource") })
}

/// Returns an INVOKE.
fn invoke(agent: &str, resources: &[&str]) -> Kind {
    let resources = resources.iter().map(|r| Resource::parse(r).expect("a plain resource")).collect();
    Kind::Invoke(Invoke { agent: agent.to_owned(), resources, message: String::new() })
}

/// Returns a CONCLUDE.
fn conclude() -> Kind {
    Kind::Conclude(Conclude { resources: Vec::new(), message: "done".to_owned() })
}

/// Returns a plan with the actions at lines 10, 20, and so on.
fn plan(kinds: Vec<Kind>) -> Plan {
    let action = |(n, kind)| Action { line: (n + 1) * 10, fields: Vec::new(), kind };
    Plan { actions: kinds.into_iter().enumerate().map(action).collect(), ..Plan::default() }
}

/// Returns every diagnostic, `line action: message (hint)`, and every provisional step.
fn said(plan: &Plan, facts: &Snapshot) -> String {
    let simulation = validate(plan, facts).expect("the snapshot can be read");
    let mut out = Vec::new();
    for d in &simulation.diagnostics {
        out.push(format!("{} {}: {} ({})", d.line, d.action, d.message, d.hint.as_deref().unwrap_or("-")));
    }
    for (n, step) in simulation.steps.iter().enumerate().filter(|(_, s)| s.provisional) {
        out.push(format!("action {} is provisional{}", n + 1, if step.wrong { " and wrong" } else { "" }));
    }
    out.join("\n")
}

/// Compares what is said about the actions.
fn check(kinds: Vec<Kind>, expected: &str) {
    assert_eq!(said(&plan(kinds), &snapshot()), expected);
}

#[test]
fn a_file_is_created_where_nothing_is() {
    check(vec![create("src/new/c.rs", "x\n"), create("empty.txt", "now full\n")], "");
    check(
        vec![create("README.md", "x\n")],
        "10 CREATE README.md: `README.md` exists already (change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole)",
    );
    check(vec![create("src", "x\n")], "10 CREATE src: `src` is a folder (choose another path)");
    check(
        vec![create("README.md/x", "x\n")],
        "10 CREATE README.md/x: `README.md/x` is below `README.md`, which is a file (choose another path)",
    );
    check(vec![create("link/x", "x\n")], "10 CREATE link/x: `link/x` is below `link`, which is a symbolic link (choose another path)");
    check(vec![create("link", "x\n")], "10 CREATE link: `link` is a symbolic link (choose another path)");
    check(
        vec![create("vendor/x", "x\n")],
        "10 CREATE vendor/x: `vendor/x` is below `vendor`, which is a repository of its own (choose another path)",
    );
    check(
        vec![create("huge.csv", "x\n")],
        "10 CREATE huge.csv: `huge.csv` is left out of the snapshot: too large, a secret, or unreadable (choose another path)",
    );
    check(vec![create("n", "a\0")], "10 CREATE n: the content of `n` has a NUL character (write binary files with EXECUTE)");
}

#[test]
fn an_overwrite_replaces_a_file_as_a_whole() {
    let mut kind = create("hidden.rs", "new\n");
    if let Kind::Create(create) = &mut kind {
        create.overwrite = true;
    }
    let simulation = validate(&plan(vec![kind]), &snapshot()).expect("the snapshot can be read");
    assert_eq!(simulation.diagnostics, []);
    assert_eq!(simulation.steps[0].before.as_deref(), Some(&b"secret\n"[..]));
    assert_eq!(simulation.steps[0].after.as_deref(), Some(&b"new\n"[..]));
    assert!(simulation.steps[0].outside_context);
}

#[test]
fn one_path_is_created_once() {
    check(
        vec![create("c", "x\n"), create("c", "y\n")],
        "20 CREATE c: `c` is created twice (keep one CREATE; change the new file in it, or with an EDIT)",
    );
    check(vec![create("d", "x\n"), create("d/e", "y\n")], "20 CREATE d/e: `d/e` is below `d`, which is a file (choose another path)");
    check(vec![create("d/e", "x\n"), create("d", "y\n")], "20 CREATE d: `d` is a folder (choose another path)");
}

#[test]
fn names_that_differ_in_case_alone_are_one_name() {
    check(
        vec![create("readme.md", "x\n")],
        "10 CREATE readme.md: `readme.md` is the same name as `README.md` for some file systems (choose another name)",
    );
    check(
        vec![create("SRC/new.rs", "x\n")],
        "10 CREATE SRC/new.rs: `SRC` is the same name as `src` for some file systems (spell the folder as it is)",
    );
    check(
        vec![create("caf\u{e9}", "x\n"), create("cafe\u{301}", "x\n")],
        "20 CREATE cafe\u{301}: `cafe\u{301}` is the same name as `caf\u{e9}` for some file systems (choose another name)",
    );
    check(vec![create("src/new.rs", "x\n"), create("src/NEW2.rs", "x\n")], "");
}

#[test]
fn an_edit_needs_a_text_file_of_the_context() {
    check(vec![edit("nope.rs", &[("a\n", "b\n")])], "10 EDIT nope.rs: there is no file `nope.rs` (a new file is made with CREATE)");
    check(vec![edit("lib/A.rs", &[("a\n", "b\n")])], "10 EDIT lib/A.rs: there is no file `lib/A.rs` (there is `src/a.rs`)");
    check(vec![edit("src", &[("a\n", "b\n")])], "10 EDIT src: `src` is a folder (EDIT changes text files of the project only)");
    check(vec![edit("link", &[("a\n", "b\n")])], "10 EDIT link: `link` is a symbolic link (EDIT changes text files of the project only)");
    check(
        vec![edit("vendor", &[("a\n", "b\n")])],
        "10 EDIT vendor: `vendor` is a repository of its own (EDIT changes text files of the project only)",
    );
    check(vec![edit("bin.dat", &[("a\n", "b\n")])], "10 EDIT bin.dat: `bin.dat` is binary (change it with EXECUTE)");
    check(vec![edit("latin.txt", &[("a\n", "b\n")])], "10 EDIT latin.txt: `latin.txt` is not UTF-8 (change it with EXECUTE)");
    check(
        vec![edit("hidden.rs", &[("secret\n", "b\n")])],
        "10 EDIT hidden.rs: `hidden.rs` is in no context list (READ it in this plan and edit it in the next one, when its text is before you)",
    );
}

#[test]
fn every_wrong_pair_is_reported_and_the_right_ones_are_named() {
    check(
        vec![edit("src/a.rs", &[("one\n", "1\n"), ("Bad1\n", "x\n"), ("three\n", "3\n"), ("Bad2\n", "x\n")])],
        "2 EDIT src/a.rs: FIND 2 of 4 is not in `src/a.rs`
no place in the file is like it (copy the lines to change from the file as they are, blanks included; pairs 1 and 3 of 4 fit, repeat them as they are)
4 EDIT src/a.rs: FIND 4 of 4 is not in `src/a.rs`
no place in the file is like it (copy the lines to change from the file as they are, blanks included)",
    );
}

#[test]
fn a_find_sees_what_the_pairs_above_it_did() {
    check(vec![edit("src/a.rs", &[("one\n", "uno\n"), ("uno\ntwo\n", "x\n")])], "");
    check(
        vec![edit("src/a.rs", &[("one\n", "two\n"), ("two\n", "x\n")])],
        "2 EDIT src/a.rs: FIND 2 of 2 stands in 2 places in `src/a.rs`: lines 1, 2
  line 1 is the first
  line 2 is below `two` (repeat enough of the lines around the right place in FIND and REPLACE that only this place has them; pair 1 of 2 fits, repeat it as it is)",
    );
    check(vec![edit("src/a.rs", &[("two\n", "")]), edit("src/a.rs", &[("one\nthree\n", "x\n")])], "");
}

#[test]
fn a_pair_that_rests_on_a_failed_one_is_no_mistake_of_its_own() {
    check(
        vec![edit("src/a.rs", &[("missing entirely\n", "new text\nmore\n"), ("new text\n", "x\n")])],
        "1 EDIT src/a.rs: FIND 1 of 2 is not in `src/a.rs`
no place in the file is like it (copy the lines to change from the file as they are, blanks included)",
    );
}

#[test]
fn blank_and_equal_pairs_are_mistakes_even_without_the_file() {
    check(
        vec![edit("src/a.rs", &[("\n", "x\n"), ("one\n", "one\n")])],
        "1 EDIT src/a.rs: FIND 1 of 2 is blank (FIND names the lines to change; to add lines, repeat a line next to them in FIND and in REPLACE)
2 EDIT src/a.rs: FIND 2 of 2 and its REPLACE are equal (leave the pair out, or say in REPLACE what shall be there)",
    );
    check(
        vec![Kind::Execute(execute("make gen")), edit("gen.rs", &[("a\n", "a\n")])],
        "1 EDIT gen.rs: FIND and its REPLACE are equal (leave the pair out, or say in REPLACE what shall be there)
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
fn a_file_that_the_plan_creates_can_be_edited_and_read() {
    check(vec![create("hidden/new.rs", "a\nb\n"), edit("hidden/new.rs", &[("b\n", "c\n")]), read("hidden/new.rs")], "");
    check(
        vec![edit("later.rs", &[("a\n", "b\n")]), create("later.rs", "a\n")],
        "10 EDIT later.rs: there is no file `later.rs` (a new file is made with CREATE)",
    );
}

#[test]
fn what_a_command_may_put_right_is_judged_when_it_runs() {
    check(
        vec![
            Kind::Execute(execute("make gen")),
            create("README.md", "x\n"),
            edit("gen.rs", &[("a\n", "b\n")]),
            edit("src/a.rs", &[("not there yet\n", "b\n")]),
            read("out.txt"),
            read("https://example.com"),
        ],
        "action 2 is provisional\naction 3 is provisional\naction 4 is provisional\naction 5 is provisional",
    );
}

#[test]
fn what_no_command_can_put_right_stays_a_mistake() {
    check(
        vec![Kind::Execute(execute("make gen")), edit("hidden.rs", &[("secret\n", "b\n")])],
        "20 EDIT hidden.rs: `hidden.rs` is in no context list (READ it in this plan and edit it in the next one, when its text is before you)
action 2 is provisional and wrong",
    );
}

#[test]
fn a_command_needs_text_and_a_folder() {
    check(vec![Kind::Execute(execute(" \n"))], "10 EXECUTE: there is no command (put the command into the code block)");
    let run_in = |cwd: &str| Kind::Execute(Execute { cwd: Some(path(cwd)), ..execute("ls") });
    check(vec![run_in("src")], "");
    check(vec![create("new/x", "x\n"), run_in("new")], "");
    check(vec![run_in("nope")], "10 EXECUTE ls: there is no folder `nope` to run in (`cwd` is relative to the project's root)");
    check(vec![run_in("README.md")], "10 EXECUTE ls: `README.md` is a file, and no folder to run in (name the folder that it is in)");
    check(vec![run_in("link")], "10 EXECUTE ls: `link` is a symbolic link (run in a folder of the project)");
    check(vec![Kind::Execute(execute("mkdir out")), run_in("out")], "action 2 is provisional");
}

#[test]
fn variables_that_decide_what_runs_are_refused() {
    let with = |env: &[(&str, &str)]| {
        Kind::Execute(Execute { env: env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(), ..execute("ls") })
    };
    check(
        vec![with(&[("LD_PRELOAD", "x"), ("A B", "x"), ("CI", "1"), ("CI", "2")])],
        "10 EXECUTE ls: a plan may not set `LD_PRELOAD` (it decides which programs and services a command reaches; leave it as the user has it)
10 EXECUTE ls: `A B` is no name for a variable (use letters, digits and `_`)
10 EXECUTE ls: `CI` is set twice (keep one value)",
    );
}

#[test]
fn a_read_names_something_that_is_there() {
    check(vec![read("src"), read("README.md"), read("https://nowhere.invalid/x"), read(".teddy/demo/01/report.md")], "");
    check(vec![read("nope.md")], "10 READ nope.md: there is no file `nope.md` (-)");
    check(vec![read("docs/readme.md")], "10 READ docs/readme.md: there is no file `docs/readme.md` (there is `README.md`)");
    check(vec![read("link")], "10 READ link: `link` is a symbolic link (name the file itself)");
    check(
        vec![read(".teddy/demo/09/report.md")],
        "10 READ .teddy/demo/09/report.md: there is no artifact `.teddy/demo/09/report.md` (name a turn that was executed and a file that it has)",
    );
}

#[test]
fn a_prune_takes_from_the_turns_own_list_once() {
    check(vec![prune("src/a.rs")], "");
    check(
        vec![prune("README.md")],
        "10 PRUNE README.md: `README.md` is not in the turn's context (it comes from the session's or the global list, which the user keeps)",
    );
    check(vec![prune("hidden.rs")], "10 PRUNE hidden.rs: `hidden.rs` is not in the turn's context (leave the action out)");
    check(vec![prune("src/a.rs"), prune("src/a.rs")], "20 PRUNE src/a.rs: `src/a.rs` is pruned twice (keep one PRUNE)");
}

#[test]
fn a_hand_over_has_someone_to_go_to() {
    check(vec![invoke("Architect", &["README.md", "src"])], "");
    check(vec![invoke("Wizard", &[])], "10 INVOKE Wizard: there is no agent `Wizard` (the agents are `architect`, `developer`)");
    check(vec![invoke("developer", &["nope.md"])], "10 INVOKE developer: there is no file `nope.md` (-)");
    check(vec![create("brief.md", "x\n"), invoke("developer", &["brief.md"])], "");
    check(
        vec![conclude()],
        "10 CONCLUDE done: there is no caller to return to (no agent handed over to this one; talk to the user with CHAT_WITH_USER)",
    );
}

#[test]
fn a_plan_hands_over_once_and_at_its_end() {
    let facts = Snapshot { caller: true, ..snapshot() };
    let check = |kinds, expected: &str| assert_eq!(said(&plan(kinds), &facts), expected);
    check(vec![read("src"), conclude()], "");
    check(
        vec![invoke("developer", &[]), conclude()],
        "20 CONCLUDE done: the plan hands over twice, first at line 10 (keep one INVOKE or CONCLUDE)",
    );
    check(
        vec![conclude(), Kind::ChatWithUser(ChatWithUser { message: "hi".to_owned() })],
        "10 CONCLUDE done: CONCLUDE is not the last action (put it at the end: nothing of this plan runs after it)",
    );
}

#[test]
fn memos_come_new_and_go_once() {
    let change = |line, verb, text: &str| Change { line, verb, text: text.to_owned(), comment: None };
    let memos = vec![
        change(1, Verb::Add, "New."),
        change(2, Verb::Add, "Use pnpm."),
        change(3, Verb::Remove, "Never was."),
        change(4, Verb::Add, "New."),
        change(5, Verb::Remove, "New."),
    ];
    assert_eq!(
        said(&Plan { memos, ..Plan::default() }, &snapshot()),
        "2 : the memo is there already: `Use pnpm.` (leave the line out)
3 : there is no such memo: `Never was.` (copy the memo to remove word for word)
4 : the memo is named twice, first at line 1: `New.` (keep one line)
5 : the memo is added and removed, first at line 1: `New.` (keep the line that says what shall be)"
    );
}

#[test]
fn steps_hold_the_files_before_and_after_and_right_actions_are_named() {
    let plan =
        plan(vec![edit("src/a.rs", &[("one\n", "1\n"), ("two\n", "2\n")]), create("README.md", "x\n"), edit("src/a.rs", &[("2\n", "")])]);
    let simulation = validate(&plan, &snapshot()).expect("the snapshot can be read");
    let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|b| String::from_utf8_lossy(b).into_owned());
    assert_eq!(text(&simulation.steps[0].before).as_deref(), Some("one\ntwo\nthree\n"));
    assert_eq!(text(&simulation.steps[0].after).as_deref(), Some("1\n2\nthree\n"));
    assert_eq!(text(&simulation.steps[2].before).as_deref(), Some("1\n2\nthree\n"));
    assert_eq!(text(&simulation.steps[2].after).as_deref(), Some("1\nthree\n"));
    assert_eq!(simulation.steps[1].after, None);
    assert_eq!(simulation.steps[0].places.iter().map(|(n, p)| (*n, p.line)).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    assert_eq!(simulation.right(&plan), ["EDIT src/a.rs", "EDIT src/a.rs"]);
}
