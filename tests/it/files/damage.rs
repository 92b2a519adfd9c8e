//! Damage to files besides the change of their text is named by `record` and after commands.

use crate::plans::{execute, plan};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new();
    std::fs::write(repo.path().join("latin.txt"), b"caf\xe9\nb\n").unwrap();
    repo.write("dos.txt", "a\r\nb\r\nc\r\n");
    repo.write("run.sh", "#!/bin/sh\n");
    repo.write("old.txt", "the same\n");
    repo.write("Cargo.lock", "# 1\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "base"]);
    repo.teddy(&["new", "demo"]).check(0, &[]);
    repo
}

/// Damages each file of the project.
const SCRIPT: &str = "printf 'caf\\357\\277\\275\\nB\\n' >latin.txt
printf 'a\\nB\\nc\\n' >dos.txt
chmod +x run.sh
mv old.txt new.txt
echo '# 2' >Cargo.lock";

const DAMAGE: &str = "\
warning: `Cargo.lock`: a tool generates this file
warning: `dos.txt`: line ends change from CRLF to LF in 2 lines
warning: `latin.txt`: 1 byte that is not UTF-8 became U+FFFD, and what it was is lost
warning: `new.txt`: it is `old.txt` under another name
warning: `run.sh`: it becomes executable
";

#[test]
#[expect(clippy::disallowed_methods, reason = "a test starts programs itself")]
fn record_names_what_a_program_did_besides() {
    let repo = project();
    let ran = std::process::Command::new("sh")
        .args(["-c", SCRIPT])
        .current_dir(repo.path())
        .status();
    assert!(ran.unwrap().success());
    let out = repo.teddy(&["record", "-m", "by an agent"]);
    out.check(0, &[]);
    let expected = format!("{DAMAGE}Recorded as turn 1: 6 files changed.\n");
    assert_eq!(out.stderr, expected);
}

#[test]
fn a_turn_names_what_its_commands_did_besides() {
    let repo = project();
    let damage = plan("Damage", &[execute(SCRIPT)]);
    let out = repo.teddy_reads(&["-q", "execute", "-", "-y"], &damage);
    out.check(0, &[]);
    assert_eq!(out.stderr, DAMAGE);
    repo.teddy(&["-q", "undo"]).check(0, &[]);

    let harmless = plan("Harmless", &[execute("echo b >>old.txt")]);
    let out = repo.teddy_reads(&["--json", "execute", "-", "-y"], &harmless);
    out.check(0, &[]);
    let reply: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(reply["damage"], serde_json::json!([]));
}
