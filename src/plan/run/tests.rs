//! Plans run in a folder of their own, with commands, pages and searches that are made up.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;
use crate::host::shell::{Captured, End, Finished};
use crate::plan::action::chat_with_user::ChatWithUser;
use crate::plan::action::conclude::Conclude;
use crate::plan::action::create::Create;
use crate::plan::action::edit::{Edit, Pair};
use crate::plan::action::invoke::Invoke;
use crate::plan::action::prune::Prune;
use crate::plan::action::read::Read;
use crate::plan::action::research::Research;

/// A worktree and the world around it.
struct World {
    /// The folder; removed at the end.
    folder: tempfile::TempDir,
    /// What happened, a line each.
    log: Vec<String>,
    /// The user asked to stop.
    stop: bool,
}

impl World {
    /// Returns a worktree with a few files.
    fn new() -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let world = World { folder, log: Vec::new(), stop: false };
        world.put("src/a.rs", b"one\ntwo\nthree\n");
        world.put("bin.dat", b"a\0b");
        world.put("empty.txt", b"");
        world
    }

    /// Writes a file.
    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the folder can be made");
        fs::write(path, bytes).expect("the file can be written");
    }

    /// Returns what a file says; nothing if there is none.
    fn get(&self, name: &str) -> Option<String> {
        fs::read(self.folder.path().join(name)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Runs actions, all of them but those that are not chosen.
    fn run(&mut self, kinds: Vec<Kind>, left_out: &[usize]) -> Ran {
        let action = |(n, kind)| Action { line: n + 1, fields: Vec::new(), kind };
        let plan = Plan { actions: kinds.into_iter().enumerate().map(action).collect(), ..Plan::default() };
        let chosen: Vec<bool> = (0..plan.actions.len()).map(|n| !left_out.contains(&n)).collect();
        let root = Root::open(self.folder.path()).expect("the folder can be opened");
        run(&plan, &chosen, &mut Stage { root: &root, tools: self })
    }

    /// Compares how each action ended.
    fn check(&mut self, kinds: Vec<Kind>, expected: &[&str]) -> Ran {
        let ran = self.run(kinds, &[]);
        assert_eq!(said(&ran), expected);
        ran
    }
}

/// Returns how each action ended, as `Ending: detail`.
fn said(ran: &Ran) -> Vec<String> {
    ran.outcomes.iter().map(|o| format!("{:?}: {}", o.ending, o.detail)).collect()
}

impl Tools for World {
    /// `exit 3`, `write <file> <text>`, `stop`, `sleep`; anything else succeeds.
    fn execute(&mut self, execute: &Execute) -> io::Result<Finished> {
        let words: Vec<&str> = execute.command.split_whitespace().collect();
        let end = match words.as_slice() {
            ["exit", code] => End::Exited(code.parse().expect("a number")),
            ["sleep"] => End::TimedOut(Duration::from_secs(2)),
            ["kill"] => End::Signaled(9),
            ["nothing"] => return Err(io::Error::other("no temporary file")),
            ["stop"] => {
                self.stop = true;
                End::Interrupted
            }
            ["write", file, text] => {
                self.put(file, format!("{text}\n").as_bytes());
                End::Exited(0)
            }
            _ => End::Exited(0),
        };
        let output = Captured { head: execute.command.clone().into_bytes(), tail: Vec::new(), lost: 0 };
        Ok(Finished { end, output, duration: Duration::ZERO, hint: None })
    }

    fn fetch(&mut self, url: &str) -> Result<(), String> {
        if url.contains("bad") { Err("the server says 403".to_owned()) } else { Ok(()) }
    }

    fn search(&mut self, query: &str) -> Result<String, String> {
        if query.contains("bad") { Err("no answer".to_owned()) } else { Ok(format!("- about {query}")) }
    }

    fn has_artifact(&self, artifact: &Artifact) -> bool {
        artifact.turn == 1
    }

    fn interrupted(&self) -> bool {
        self.stop
    }

    fn started(&mut self, index: usize, action: &Action) {
        self.log.push(format!("{index} {}", action.kind.name()));
    }

    fn finished(&mut self, index: usize, outcome: &Outcome) {
        self.log.push(format!("{index} {:?}", outcome.ending));
    }
}

/// Returns a path.
fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).expect("the tests name plain paths")
}

/// Returns a CREATE.
fn create(to: &str, content: &str) -> Create {
    Create { path: path(to), content: content.to_owned(), language: String::new(), overwrite: false }
}

/// Returns an EDIT.
fn edit(to: &str, pairs: &[(&str, &str)]) -> Kind {
    let pair = |(find, replace): &(&str, &str)| Pair {
        line: 1,
        find: (*find).to_owned(),
        replace: (*replace).to_owned(),
        language: String::new(),
    };
    Kind::Edit(Edit { path: path(to), pairs: pairs.iter().map(pair).collect() })
}

/// Returns a command.
fn command(text: &str) -> Execute {
    Execute {
        command: text.to_owned(),
        language: String::new(),
        cwd: None,
        env: Vec::new(),
        expected_outcome: String::new(),
        allow_failure: false,
        timeout: None,
    }
}

/// Returns an EXECUTE.
fn execute(text: &str) -> Kind {
    Kind::Execute(command(text))
}

/// Returns a READ.
fn read(what: &str) -> Kind {
    Kind::Read(Read { resource: Resource::parse(what).expect("a plain resource") })
}

#[test]
fn later_actions_see_what_earlier_ones_did() {
    let mut world = World::new();
    let ran = world.check(
        vec![
            Kind::Create(create("new/b.rs", "fn b() {}\n")),
            edit("new/b.rs", &[("fn b() {}\n", "fn c() {}\n")]),
            edit("new/b.rs", &[("fn c() {}\n", "fn d() {}\nfn e() {}\n")]),
            execute("write gen.rs text"),
            edit("gen.rs", &[("text\n", "changed\n")]),
        ],
        &[
            "Success: created, 1 line",
            "Success: changed 1 place: 1 line added, 1 removed",
            "Success: changed 1 place: 2 lines added, 1 removed",
            "Success: the command succeeded",
            "Success: changed 1 place: 1 line added, 1 removed",
        ],
    );
    assert_eq!(world.get("new/b.rs").as_deref(), Some("fn d() {}\nfn e() {}\n"));
    assert_eq!(world.get("gen.rs").as_deref(), Some("changed\n"));
    assert_eq!(ran.outcomes[0].written, [path("new/b.rs")]);
    assert_eq!(ran.outcomes[3].written, []);
    assert!(!ran.failed && !ran.interrupted);
}

#[test]
fn a_file_is_made_only_where_none_is() {
    let mut world = World::new();
    world.check(vec![Kind::Create(create("src/a.rs", "x\n"))], &["Failure: `src/a.rs` exists already"]);
    world.check(vec![Kind::Create(create("src", "x\n"))], &["Failure: `src` exists already and is no file"]);
    assert_eq!(world.get("src/a.rs").as_deref(), Some("one\ntwo\nthree\n"));
    world.check(vec![Kind::Create(create("empty.txt", "x"))], &["Success: filled the empty file, 1 line"]);
    world.check(vec![Kind::Create(Create { overwrite: true, ..create("src/a.rs", "x\ny\n") })], &["Success: replaced as a whole, 2 lines"]);
    assert_eq!(world.get("empty.txt").as_deref(), Some("x"));
    assert_eq!(world.get("src/a.rs").as_deref(), Some("x\ny\n"));
}

#[test]
fn an_edit_applies_as_a_whole_or_not_at_all() {
    let mut world = World::new();
    let ran = world.check(
        vec![edit("src/a.rs", &[("one\n", "1\n"), ("nowhere at all\n", "x\n")])],
        &["Failure: FIND 2 of 2 is not in `src/a.rs`; no place in the file is like it; the file is as it was"],
    );
    assert!(ran.failed);
    assert_eq!(world.get("src/a.rs").as_deref(), Some("one\ntwo\nthree\n"));
    let ran = world
        .check(vec![edit("src/a.rs", &[("one\n", "1\n"), ("1\ntwo\n", "2\n")])], &["Success: changed 2 places: 1 line added, 2 removed"]);
    assert_eq!(ran.outcomes[0].places.iter().map(|p| p.line).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(world.get("src/a.rs").as_deref(), Some("2\nthree\n"));
}

#[test]
fn an_edit_fails_where_a_command_has_changed_its_file() {
    let mut world = World::new();
    let ran = world.check(
        vec![execute("write src/a.rs other"), edit("src/a.rs", &[("one\n", "1\n")])],
        &["Success: the command succeeded", "Failure: FIND is not in `src/a.rs`; no place in the file is like it; the file is as it was"],
    );
    assert!(ran.failed);
    assert_eq!(world.get("src/a.rs").as_deref(), Some("other\n"));
}

#[test]
fn an_edit_needs_text() {
    let mut world = World::new();
    world.put("latin.txt", b"caf\xe9\n");
    world.check(vec![edit("bin.dat", &[("a\n", "b\n")])], &["Failure: `bin.dat` is binary"]);
    world.check(vec![edit("latin.txt", &[("a\n", "b\n")])], &["Failure: `latin.txt` is not UTF-8"]);
    world.check(vec![edit("nope", &[("a\n", "b\n")])], &["Failure: cannot read `nope`: no such file or directory"]);
}

#[test]
fn an_edit_keeps_the_mode_and_leaves_hard_links_alone() {
    let mut world = World::new();
    let (file, other) = (world.folder.path().join("src/a.rs"), world.folder.path().join("linked"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("the mode can be set");
    fs::hard_link(&file, &other).expect("the link can be made");
    world.run(vec![edit("src/a.rs", &[("one\n", "1\n")])], &[]);
    assert_eq!(fs::metadata(&file).expect("the file is there").mode() & 0o777, 0o755);
    assert_eq!(world.get("src/a.rs").as_deref(), Some("1\ntwo\nthree\n"));
    assert_eq!(world.get("linked").as_deref(), Some("one\ntwo\nthree\n"));
}

#[test]
fn no_action_goes_through_a_link_or_into_another_repository() {
    let mut world = World::new();
    let outside = tempfile::tempdir().expect("a temporary folder");
    fs::write(outside.path().join("x"), "secret\n").expect("the file can be written");
    symlink(outside.path(), world.folder.path().join("out")).expect("the link can be made");
    world.put("vendor/.git/HEAD", b"ref: refs/heads/main\n");
    for kind in [Kind::Create(create("out/new", "x\n")), edit("out/x", &[("secret\n", "b\n")]), read("out/x"), read("out")] {
        let ran = world.run(vec![kind], &[]);
        assert_eq!(ran.outcomes[0].ending, Ending::Failure, "{:?}", ran.outcomes[0]);
    }
    let in_out = Kind::Execute(Execute { cwd: Some(path("out")), ..command("ls") });
    world.check(vec![in_out], &["Failure: there is no folder `out` to run in"]);
    assert_eq!(fs::read_dir(outside.path()).expect("the folder is there").count(), 1);
    world.check(
        vec![Kind::Create(create("vendor/lib/x", "x\n"))],
        &["Failure: `vendor/lib/x` is in `vendor`, which is a repository of its own"],
    );
}

#[test]
fn what_comes_after_a_failure_is_skipped() {
    let mut world = World::new();
    let ran = world.check(
        vec![Kind::Create(create("kept", "x\n")), execute("exit 3"), Kind::Create(create("never", "x\n")), read("src")],
        &[
            "Success: created, 1 line",
            "Failure: the command failed with exit code 3",
            "Skipped: skipped because an action before it failed",
            "Skipped: skipped because an action before it failed",
        ],
    );
    assert!(ran.failed && !ran.interrupted);
    assert_eq!(ran.outcomes[1].exit_code, Some(3));
    assert_eq!(ran.outcomes[1].output, b"exit 3");
    assert_eq!((world.get("kept").is_some(), world.get("never")), (true, None));
    assert_eq!(world.log, ["0 CREATE", "0 Success", "1 EXECUTE", "1 Failure", "2 Skipped", "3 Skipped"]);
}

#[test]
fn a_command_that_may_fail_does_not_stop_the_plan() {
    let mut world = World::new();
    let may_fail = |text: &str| Kind::Execute(Execute { allow_failure: true, ..command(text) });
    let ran = world.check(
        vec![may_fail("exit 1"), may_fail("sleep"), execute("true")],
        &[
            "Failure: the command failed with exit code 1",
            "Failure: the command was stopped after its time limit of 2 s",
            "Success: the command succeeded",
        ],
    );
    assert!(!ran.failed);
    assert_eq!(ran.outcomes[1].exit_code, Some(124));
}

#[test]
fn a_command_that_cannot_run_is_a_failure() {
    let mut world = World::new();
    world.check(vec![execute("kill")], &["Failure: the command was killed by signal 9"]);
    world.check(vec![execute("nothing")], &["Failure: the command cannot be run: no temporary file"]);
    let run_in = |cwd: &str| Kind::Execute(Execute { cwd: Some(path(cwd)), ..command("ls") });
    world.check(vec![run_in("src")], &["Success: the command succeeded"]);
    world.check(vec![run_in("nope")], &["Failure: there is no folder `nope` to run in"]);
    let with_env = Kind::Execute(Execute { env: vec![("LD_PRELOAD".to_owned(), "x".to_owned())], ..command("ls") });
    world.check(vec![with_env], &["Failure: a plan may not set `LD_PRELOAD`"]);
}

#[test]
fn what_the_user_switched_off_is_skipped_and_stops_nothing() {
    let mut world = World::new();
    let kinds = vec![execute("exit 1"), edit("src/a.rs", &[]), Kind::Create(create("b", "x\n"))];
    let ran = world.run(kinds, &[0]);
    assert_eq!(said(&ran), ["Skipped: skipped by the user", "Skipped: skipped by the user", "Success: created, 1 line"]);
    assert!(!ran.failed);
}

#[test]
fn an_interrupt_ends_the_run_after_the_action() {
    let mut world = World::new();
    let stop = Kind::Execute(Execute { allow_failure: true, ..command("stop") });
    let ran = world.check(
        vec![stop, Kind::Create(create("never", "x\n"))],
        &["Failure: stopped by the user", "Skipped: skipped because the run was interrupted"],
    );
    assert!(ran.interrupted && ran.failed);
    assert_eq!(ran.outcomes[0].exit_code, Some(130));
    let mut world = World { stop: true, ..World::new() };
    let ran = world.check(vec![Kind::Create(create("never", "x\n"))], &["Skipped: skipped because the run was interrupted"]);
    assert!(ran.interrupted && !ran.failed);
}

#[test]
fn a_read_that_succeeds_joins_the_context() {
    let mut world = World::new();
    let resources = ["src/a.rs", "src", "https://example.com/x", ".teddy/demo/01/report.md"];
    let ran = world.run(resources.iter().map(|r| read(r)).collect(), &[]);
    let effects: Vec<Option<Effect>> = ran.outcomes.iter().map(|o| o.effect.clone()).collect();
    let expected = resources.map(|r| Some(Effect::Add(Resource::parse(r).expect("a plain resource"))));
    assert_eq!(effects, expected);
    assert_eq!(ran.outcomes[0].detail, "read; it is in the context of the next turn");
}

#[test]
fn a_read_that_fails_adds_nothing() {
    let mut world = World::new();
    for (what, why) in [
        ("nope", "there is no file `nope`"),
        ("https://bad.example.com/", "`https://bad.example.com/` cannot be read: the server says 403"),
        (".teddy/demo/07/report.md", "there is no artifact `.teddy/demo/07/report.md`"),
    ] {
        let ran = world.check(vec![read(what)], &[&format!("Failure: {why}")]);
        assert_eq!(ran.outcomes[0].effect, None);
    }
}

#[test]
fn a_search_succeeds_if_one_query_does() {
    let mut world = World::new();
    let research = |queries: &[&str]| Kind::Research(Research { queries: queries.iter().map(|q| (*q).to_owned()).collect() });
    let ran = world
        .check(vec![research(&["rust", "bad one", "git"])], &["Success: 2 of 3 queries have results; no result for `bad one`: no answer"]);
    let output = String::from_utf8_lossy(&ran.outcomes[0].output).into_owned();
    assert_eq!(output, "Query: rust\n\n- about rust\n\nno result for `bad one`: no answer\n\nQuery: git\n\n- about git\n\n");
    world.check(vec![research(&["bad"])], &["Failure: 0 of 1 queries have results; no result for `bad`: no answer"]);
}

#[test]
fn what_the_plan_says_to_others_becomes_an_effect() {
    let mut world = World::new();
    let resource = || Resource::parse("src/a.rs").expect("a plain resource");
    let message = || "hello".to_owned();
    let ran = world.run(
        vec![
            Kind::Prune(Prune { resource: resource() }),
            Kind::ChatWithUser(ChatWithUser { message: message() }),
            Kind::Invoke(Invoke { agent: "Architect".to_owned(), resources: vec![resource()], message: message() }),
            Kind::Conclude(Conclude { resources: vec![], message: message() }),
        ],
        &[],
    );
    let effects: Vec<Effect> = ran.outcomes.into_iter().filter_map(|o| o.effect).collect();
    let expected = [
        Effect::Remove(resource()),
        Effect::Chat { message: message() },
        Effect::Invoke { agent: "Architect".to_owned(), resources: vec![resource()], message: message() },
        Effect::Conclude { resources: vec![], message: message() },
    ];
    assert_eq!(effects, expected);
}
