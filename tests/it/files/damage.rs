//! Damage to files besides the change of their text is named by `record` and after commands.

use std::os::unix::fs::PermissionsExt;

use crate::plans::{create, edit, execute, plan, replace};
use crate::screen::Screen;
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("latin.txt", b"caf\xe9\nb\n")
        .file("dos.txt", "a\r\nb\r\nc\r\n")
        .file("run.sh", "#!/bin/sh\n")
        .file("old.txt", "the same\n")
        .file("Cargo.lock", "# 1\n")
        .file("link.txt", "a\n")
        .file("long.txt", "line\n".repeat(40))
        .file("marked.txt", "\u{feff}a\nb\n")
        .file("spaces.txt", "if x:\n  y\n")
        .file("end.txt", "a\nb\n");
    repo.commit("base");
    repo.workflow().new_session("demo").done();
    repo
}

#[test]
fn record_names_what_a_program_did_besides() {
    let repo = project();
    let path = |name: &str| repo.path().join(name);
    repo.write("latin.txt", "caf\u{fffd}\nB\n");
    repo.write("dos.txt", "a\nB\nc\n");
    std::fs::set_permissions(path("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::rename(path("old.txt"), path("new.txt")).unwrap();
    repo.write("Cargo.lock", "# 2\n");
    let out = repo.teddy(&["record", "by an agent"]);
    insta::assert_snapshot!(out.shown(&repo), @r"
    write Cargo.lock
    write dos.txt
    write latin.txt
    write new.txt
    write run.sh
    delete old.txt
    --- stderr
    warning: `Cargo.lock`: a tool generates this file
    warning: `dos.txt`: line ends change from CRLF to LF in 2 lines
    warning: `latin.txt`: 1 byte that is not UTF-8 became U+FFFD
    warning: `new.txt`: it was renamed from `old.txt`
    warning: `run.sh`: it becomes executable
    Recorded as turn 1: 6 files changed.
    exit code 0
    ");
}

#[test]
fn record_names_the_other_kinds_of_damage_and_json_has_them_all() {
    let repo = project();
    std::fs::remove_file(repo.path().join("link.txt")).unwrap();
    std::os::unix::fs::symlink("end.txt", repo.path().join("link.txt")).unwrap();
    repo.write("long.txt", "");
    repo.write("marked.txt", "a\nc\n");
    repo.write("spaces.txt", "if x:\n\ty\n");
    repo.write("end.txt", "a\nB");
    let reply = repo.json(&["record", "by hand"], 0);
    let damage: Vec<String> = reply["damage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {}: {}", one["kind"], one["path"], one["text"]).replace('"', ""))
        .collect();
    assert_eq!(
        damage,
        [
            "final_newline_lost end.txt: the newline at the end is removed",
            "mode link.txt: it becomes a link",
            "shrunk long.txt: it shrinks from 40 to 0 lines",
            "byte_order_mark_removed marked.txt: the byte order mark is removed",
            "whitespace_only spaces.txt: only whitespace changes, in 1 line",
        ]
    );
    std::fs::remove_file(repo.path().join("link.txt")).unwrap();
    repo.write("link.txt", "a\n");
    let reply = repo.json(&["record", "back"], 0);
    assert_eq!(
        reply["damage"],
        serde_json::json!([{ "path": "link.txt", "kind": "mode", "text": "the link becomes a file" }])
    );
}

#[test]
fn a_review_shows_damage_with_the_key_that_reverts_it_and_json_has_it() {
    let repo = project();
    repo.workflow().add(&["dos.txt", "Cargo.lock"]);
    let text = plan(
        "Rewrite",
        &[
            replace("dos.txt", "a\nB\nc\n"),
            edit("Cargo.lock", "# 1", "# 2"),
            create("copy.txt", "new\n"),
        ],
    );
    let out = repo.teddy_reads(&["--json", "execute", "-"], &text);
    let reply: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        reply["review"]["damage"],
        serde_json::json!([
            { "path": "dos.txt", "kind": "line_ends", "text": "line ends change from CRLF to LF in 2 lines" },
            { "path": "Cargo.lock", "kind": "generated", "text": "a tool generates this file" },
        ])
    );

    let mut screen = Screen::open(&repo, (100, 45), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    let shown = screen.shown();
    for line in [
        "⚠ dos.txt: line ends change from CRLF to LF in 2 lines",
        "⚠ Cargo.lock: a tool generates this file",
        "enter approves · d diff · c comment · B keep your bytes · ?",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    screen.press("B");
    screen.wait_for("With your changes: 1 action changed");
    screen.settled();
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("dos.txt"), "a\r\nB\r\nc\r\n");
}

#[test]
fn a_turn_names_what_its_commands_did_besides() {
    let repo = project();
    let script = "printf 'caf\\357\\277\\275\\nB\\n' >latin.txt
printf 'a\\nB\\nc\\n' >dos.txt
chmod +x run.sh
mv old.txt new.txt
echo '# 2' >Cargo.lock";
    let damage = plan("Damage", &[execute(script)]);
    let out = repo.teddy_reads(&["-q", "execute", "-", "-y"], &damage);
    insta::assert_snapshot!(out.shown(&repo), @r"
    turn 1 executed [id]
    --- stderr
    warning: `Cargo.lock`: a tool generates this file
    warning: `dos.txt`: line ends change from CRLF to LF in 2 lines
    warning: `latin.txt`: 1 byte that is not UTF-8 became U+FFFD
    warning: `new.txt`: it was renamed from `old.txt`
    warning: `run.sh`: it becomes executable
    exit code 0
    ");
    repo.workflow().undo(1).done();

    let harmless = plan("Harmless", &[execute("echo b >>old.txt")]);
    let out = repo.teddy_reads(&["--json", "execute", "-", "-y"], &harmless);
    out.check(0, &[]);
    let reply: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(reply["damage"], serde_json::json!([]));
}

#[test]
fn hard_links_and_marked_files_are_named_before_and_after_they_change() {
    let repo = TestRepo::new()
        .file(".gitattributes", "api.txt linguist-generated\n")
        .file("api.txt", "1\n")
        .file("linked.txt", "1\n")
        .file("built.txt", "1\n");
    repo.commit("base");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .add(&[".gitattributes", "api.txt", "linked.txt"]);
    for name in ["linked.txt", "built.txt"] {
        std::fs::hard_link(repo.path().join(name), repo.beside(name)).unwrap();
    }

    // The attributes from before the plan count.
    let text = plan(
        "Change",
        &[
            edit(".gitattributes", "api.txt linguist-generated", "# none"),
            edit("api.txt", "1", "2"),
            edit("linked.txt", "1", "2"),
            execute("echo 2 >built.txt"),
        ],
    );
    let cut = "the hard link is cut, and the other name keeps the old content";
    let out = repo.teddy_reads(&["execute", "-", "-y"], text);
    out.check(
        0,
        &[
            "⚠ api.txt: a tool generates this file",
            &format!("⚠ linked.txt: {cut}"),
            &format!("warning: `built.txt`: {cut}"),
        ],
    );
    let old = |name: &str| std::fs::read_to_string(repo.beside(name)).unwrap();
    assert_eq!(
        (repo.read("linked.txt"), old("linked.txt")),
        ("2\n".into(), "1\n".into())
    );
    assert_eq!(
        (repo.read("built.txt"), old("built.txt")),
        ("2\n".into(), "1\n".into())
    );
}

/// Regression: any new empty file counted as a rename of any deleted one.
#[test]
fn an_empty_file_is_not_a_rename_of_another_one() {
    let repo = TestRepo::new().file("old.txt", "");
    repo.commit("base");
    repo.workflow().new_session("demo").done();
    std::fs::remove_file(repo.path().join("old.txt")).unwrap();
    repo.write("new.txt", "");
    let reply = repo.json(&["record", "by hand"], 0);
    assert_eq!(reply["damage"], serde_json::json!([]));
}

/// Regression: only the first 500 files were compared.
#[test]
fn every_changed_file_is_checked() {
    let repo = TestRepo::new().file("z.txt", "1\n");
    repo.commit("base");
    repo.workflow().new_session("demo").done();
    for number in 0..502 {
        repo.write(&format!("new/{number}.txt"), "1\n");
    }
    repo.write("z.txt", "2");
    let reply = repo.json(&["record", "by hand"], 0);
    assert_eq!(
        reply["damage"],
        serde_json::json!([{ "path": "z.txt", "kind": "final_newline_lost", "text": "the newline at the end is removed" }])
    );
}

#[test]
fn a_create_keeps_an_encoding_that_a_plan_cannot_write() {
    let utf16 = |text: &str| -> Vec<u8> {
        let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    let latin = b"caf\xe9\r\nb\r\n";
    let repo = TestRepo::new()
        .file("latin.txt", latin)
        .file("other.txt", latin)
        .file("utf16.txt", utf16("é\r\nb\r\n"));
    repo.commit("base");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .add(&["latin.txt", "other.txt", "utf16.txt"]);
    let actions = [
        replace("latin.txt", "café\nété\nB\n"),
        replace("other.txt", "café\ncrème\n"),
        replace("utf16.txt", "é\nb\n水\n"),
    ];
    repo.teddy_reads(&["--json", "execute", "-"], plan("Rewrite", &actions));
    let mut screen = Screen::open(&repo, (110, 55), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("B");
    screen.wait_for("With your changes: 2 actions changed");
    screen.settled();
    let shown = screen.shown();
    let refusal = "other.txt: the encoding of the file is unknown, and no line that stays shows how it writes `è`";
    assert!(shown.contains(refusal), "{shown}");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());

    let bytes = |name: &str| std::fs::read(repo.path().join(name)).unwrap();
    assert_eq!(
        bytes("latin.txt").escape_ascii().to_string(),
        r"caf\xe9\r\n\xe9t\xe9\r\nB\r\n"
    );
    assert_eq!(bytes("other.txt"), "café\ncrème\n".as_bytes());
    assert_eq!(bytes("utf16.txt"), utf16("é\r\nb\r\n水\r\n"));
}
