//! Damage to files besides the change of their text is named by `record` and after commands.

use std::os::unix::fs::PermissionsExt;

use crate::plans::{edit, execute, plan};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("latin.txt", b"caf\xe9\nb\n")
        .file("dos.txt", "a\r\nb\r\nc\r\n")
        .file("run.sh", "#!/bin/sh\n")
        .file("old.txt", "the same\n")
        .file("Cargo.lock", "# 1\n");
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
    insta::assert_snapshot!(repo.shown(&out), @r"
    exit code 0
    --- stdout
    write Cargo.lock
    write dos.txt
    write latin.txt
    write new.txt
    write run.sh
    delete old.txt

    --- stderr
    warning: `Cargo.lock`: a tool generates this file
    warning: `dos.txt`: line ends change from CRLF to LF in 2 lines
    warning: `latin.txt`: 1 byte that is not UTF-8 became U+FFFD, and what it was is lost
    warning: `new.txt`: it is `old.txt` under another name
    warning: `run.sh`: it becomes executable
    Recorded as turn 1: 6 files changed.
    ");
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
    insta::assert_snapshot!(repo.shown(&out), @r"
    exit code 0
    --- stdout
    turn 1 executed [id]

    --- stderr
    warning: `Cargo.lock`: a tool generates this file
    warning: `dos.txt`: line ends change from CRLF to LF in 2 lines
    warning: `latin.txt`: 1 byte that is not UTF-8 became U+FFFD, and what it was is lost
    warning: `new.txt`: it is `old.txt` under another name
    warning: `run.sh`: it becomes executable
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
