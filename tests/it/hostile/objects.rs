//! Loose objects with the wrong content, planted in the user's object directory by an unsandboxed
//! command.

use super::ground::{Ground, create, plan, run};

/// Writes a loose object named after the content `SAID`, with the content `HELD`.
const PLANT: &str = r#"python3 - <<'END'
import hashlib, os, zlib
said, held = SAID, HELD
blob = lambda content: b"blob %d\0" % len(content) + content
name = hashlib.sha1(blob(said)).hexdigest()
folder = os.path.join("REPO/.git/objects", name[:2])
os.makedirs(folder, exist_ok=True)
path = os.path.join(folder, name[2:])
if os.path.exists(path):
    os.chmod(path, 0o644)
with open(path, "wb") as file:
    file.write(held if held[:1] == b"\x78" else zlib.compress(blob(held)))
END"#;

/// The sandbox would prevent the attack.
const OFF: [&str; 2] = ["-c", "execute.sandbox=off"];

fn plant(ground: &Ground, said: &str, held: &str) -> String {
    let repo = ground.repo.path();
    PLANT
        .replace("SAID", said)
        .replace("HELD", held)
        .replace("REPO", repo.to_str().unwrap())
}

#[test]
fn a_confined_command_puts_nothing_among_the_objects_of_the_user() {
    for backend in ["overlay", "checkout"] {
        let ground = Ground::new();
        let command = plant(&ground, "b'future\\n'", "b'poison\\n'");
        let setting = format!("worktree.backend={backend}");
        let tried = ground.execute_with(plan(&run(&command)), &["-c", &setting]);
        // Over the user's files, the command finds its own git directory at the path of theirs.
        if backend == "checkout" {
            assert_eq!(tried.code, 1, "{}", tried.words);
            let is_refused = ["ermission", "Read-only"]
                .iter()
                .any(|part| tried.words.contains(part));
            assert!(is_refused, "{}", tried.words);
        }
        ground.repo.git(&["fsck", "--strict", "--no-dangling"]);
        let text = create("[f.txt](/f.txt)").replace("evil", "future");
        assert_eq!(ground.execute(plan(&text)).code, 0);
        let kept = ground
            .repo
            .git(&["cat-file", "-p", "teddy/sessions/s^2:f.txt"]);
        assert_eq!(kept, "future", "{backend}");
    }
}

#[test]
fn an_object_that_was_planted_under_the_name_of_a_coming_file_is_not_used() {
    let ground = Ground::new();
    for (held, number) in [
        ("b'poison\\n'", 0),
        ("b''", 1),
        (r"b'\x78\x9cgarbage'", 2),
        ("b'x' * 1000000", 3),
    ] {
        let said = format!("b'future {number}\\n'");
        let tried = ground.execute_with(plan(&run(&plant(&ground, &said, held))), &OFF);
        assert_eq!(tried.code, 0, "{held}: {}", tried.words);
        let report = ground.ok(&["show"]);
        assert!(
            report.contains("did not match its id and was quarantined"),
            "{held}: {report}"
        );
        let text = create(&format!("[f{number}.txt](/f{number}.txt)"))
            .replace("evil", &format!("future {number}"));
        assert_eq!(ground.execute(plan(&text)).code, 0);
        let kept = ground.repo.git(&[
            "cat-file",
            "-p",
            &format!("teddy/sessions/s^2:f{number}.txt"),
        ]);
        assert_eq!(kept, format!("future {number}"), "{held}");
    }
    ground.repo.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn an_object_of_the_user_that_was_overwritten_is_reported_at_once() {
    let ground = Ground::new();
    let blob = ground.repo.git(&["rev-parse", "HEAD:src/main.rs"]);
    // A second copy in a pack, so that the attack does not lose the object.
    ground.repo.git(&["repack", "-aq"]);
    let planted = plant(&ground, "b'fn main() {}\\n'", "b'poison\\n'");
    let tried = ground.execute_with(plan(&run(&planted)), &OFF);
    assert_eq!(tried.code, 0, "{}", tried.words);
    assert!(ground.ok(&["show"]).contains(&blob), "{}", tried.words);
    assert_eq!(
        ground.repo.git(&["cat-file", "-p", "HEAD:src/main.rs"]),
        "fn main() {}"
    );
    ground.repo.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn what_a_command_commits_is_no_false_object() {
    let ground = Ground::new();
    let commit =
        "echo x > made && git add made && git -c user.name=a -c user.email=b commit -q -m made";
    assert_eq!(ground.execute(plan(&run(commit))).code, 0);
    assert!(!ground.ok(&["show"]).contains("not what its name says"));
    assert_eq!(
        ground
            .repo
            .git(&["log", "-1", "--format=%s", "teddy/sessions/s^2"]),
        "made"
    );
    let incoming = ground.repo.path().join(".git/teddy/incoming");
    let left = std::fs::read_dir(incoming).unwrap();
    assert_eq!(left.count(), 0, "copies of the objects are left");
}
