//! Sessions of many turns: commands stay cheap and leave no garbage.

use std::fmt::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::plans::{create, plan};
use crate::support::{Output, TestRepo};

const SESSION: &str = "refs/teddy/sessions/demo";

/// A session of this many turns. TeDDy makes the first, and git makes copies of it.
fn session_of(turns: u64) -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("First", &[create("1.txt", "1\n")]));
    let meta = repo.git(&["show", &format!("{SESSION}:meta.yaml")]);
    let parent = |number| repo.git(&["rev-parse", &format!("{SESSION}^{number}")]);
    let (workspace, publication) = (parent(2), parent(3));
    let mut stream = String::new();
    for turn in 2..=turns {
        let facts = facts(&meta, turn);
        let message = format!("Turn {turn}\n\nTeddy-Session: demo\nTeddy-Turn: {turn}\n");
        let from = if turn == 2 {
            format!("{SESSION}^0")
        } else {
            format!(":{}", turn - 1)
        };
        write!(
            stream,
            "commit {SESSION}\nmark :{turn}\ncommitter TeDDy <teddy@localhost> {} +0000\ndata {}\n{message}\nfrom {from}\nmerge {workspace}\nmerge {publication}\nM 100644 inline meta.yaml\ndata {}\n{facts}\n",
            1_800_000_000 + turn,
            message.len(),
            facts.len()
        )
        .unwrap();
    }
    std::fs::write(repo.beside("stream"), stream).unwrap();
    let mut import = repo.command("git");
    import
        .current_dir(repo.path())
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::from(
            std::fs::File::open(repo.beside("stream")).unwrap(),
        ));
    let out = Output::of(&mut import);
    assert_eq!(out.code, 0, "{out}");
    repo
}

/// Returns the metadata of a turn, derived from that of the first. It changes no file, so that the
/// publication of the first is still the current one.
fn facts(first: &str, turn: u64) -> String {
    let after = first
        .lines()
        .find_map(|line| line.strip_prefix("  after: "));
    let after = after.unwrap();
    let line = |line: &str| match line.split_once(": ").map(|(key, _)| key) {
        Some("turn_id") => format!("turn_id: 00000000-0000-7000-8000-{turn:012}\n"),
        Some("number") => format!("number: {turn}\n"),
        Some("  before") => format!("  before: {after}\n"),
        _ => format!("{line}\n"),
    };
    first.lines().map(line).collect()
}

/// Returns the cache file of the session's log.
fn remembered(repo: &TestRepo) -> std::path::PathBuf {
    repo.path().join(".git/teddy/log/demo")
}

fn numbers(rows: &Value) -> Vec<u64> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row["number"].as_u64().unwrap()).collect()
}

#[test]
fn promise_d6_log_works_each_turn_out_once() {
    let repo = session_of(50);
    let first = repo.workflow().log();
    assert_eq!(numbers(&first), (0..=50).rev().collect::<Vec<_>>());
    let file = remembered(&repo);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 52);
    assert_eq!(repo.workflow().log(), first);
    assert_eq!(numbers(&repo.json(&["log", "-n", "40"], 0)).len(), 40);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);

    // `log` prints the cached rows.
    let first_row = text.lines().nth(1).unwrap();
    let other = first_row.replace("Start session demo", "Remembered");
    let body: Vec<&str> = [other.as_str()]
        .into_iter()
        .chain(text.lines().skip(2))
        .collect();
    let body = body.join("\n");
    let crc = crc(body.as_bytes());
    std::fs::write(&file, format!("3 {crc:08x}\n{body}")).unwrap();
    assert_eq!(repo.workflow().log()[50]["title"], "Remembered");

    // A cache that is damaged or of another version is ignored.
    for damaged in [
        String::new(),
        text[..text.len() - 9].to_owned(),
        text.replacen("executed", "rejected", 1),
        text.replacen("3 ", "4 ", 1),
    ] {
        std::fs::write(&file, damaged).unwrap();
        assert_eq!(repo.workflow().log(), first);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

/// CRC-32, as in zip files.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

#[test]
fn promise_d6_what_is_remembered_follows_the_session() {
    let repo = session_of(40);
    repo.done(&["log"]);
    repo.workflow()
        .run_plan(&plan("New", &[create("new.txt", "1\n")]));
    repo.workflow().undo(1).done();
    let rows = repo.workflow().log();
    assert_eq!(numbers(&rows), (0..=42).rev().collect::<Vec<_>>());
    assert_eq!(
        (&rows[0]["title"], &rows[1]["title"], &rows[2]["title"]),
        (&"Undo 41: New".into(), &"New".into(), &"Turn 40".into())
    );
    std::fs::remove_file(remembered(&repo)).unwrap();
    assert_eq!(repo.workflow().log(), rows);

    // A branch at an older turn and a session that git moved back show only their own turns.
    repo.workflow().branch("35", "alt").done();
    assert_eq!(numbers(&repo.workflow().log())[0], 35);
    repo.git(&["update-ref", SESSION, &format!("{SESSION}~5")]);
    assert_eq!(numbers(&repo.json(&["-s", "demo", "log"], 0))[0], 37);
    repo.done(&["gc", "demo", "-y"]);
    assert!(!remembered(&repo).exists());
}

#[test]
fn promise_d6_a_turn_leaves_no_loose_object() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.git(&["gc", "-q"]);
    let loose = || repo.git(&["count-objects"]);
    assert_eq!(loose(), "0 objects, 0 kilobytes");
    repo.workflow().new_session("demo").done();
    repo.reply(&plan("Planned", &[create("b.txt", "b\n")]));
    repo.workflow().plan("make b").done();
    repo.done(&["execute", "-y"]);
    repo.workflow()
        .run_plan(&plan("From a file", &[create("c.txt", "c\n")]));
    repo.workflow().undo(1).done();
    repo.done(&["status"]);
    assert_eq!(loose(), "0 objects, 0 kilobytes");
}

#[test]
fn promise_d6_turns_of_every_kind_leave_no_loose_object() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.git(&["gc", "-q"]);
    let file = repo.beside("plan.md");
    let write = |turn: usize| {
        let made = create(&format!("{turn}.txt"), &format!("{turn}\n"));
        plan(&format!("Turn {turn}"), &[made])
    };
    let path = file.to_str().unwrap();

    std::fs::write(&file, write(0)).unwrap();
    repo.configure(&format!(
        "model: m\nmodels:\n  m: {{ kind: command, run: [cat, '{path}'] }}\n"
    ));
    repo.done(&["start", "--name", "demo", "-m", "make 0", "-y"]);
    for turn in 1..20 {
        std::fs::write(&file, write(turn)).unwrap();
        match turn % 3 {
            0 => repo.workflow().plan("make it").done(),
            1 => repo.done(&["plan", "--from", path]),
            _ => repo.done(&["execute", path, "-y"]),
        };
        if turn % 3 != 2 {
            repo.done(&["execute", "-y"]);
        }
    }
    assert_eq!(numbers(&repo.workflow().log()).len(), 21);
    assert_eq!(repo.git(&["count-objects"]), "0 objects, 0 kilobytes");
}
