//! Import of untrusted bundles: truncated, forged or too large. An import is all or nothing.

use std::io::Write as _;
use std::process::Stdio;

use crate::plans::{create, plan};
use crate::share::bundles::{bundle, elsewhere, project};
use crate::support::TestRepo;
use crate::support::remotes::session_refs;

/// Writes a bundle with these refs and a pack of these objects, which `git bundle create` would
/// refuse.
fn handmade(repo: &TestRepo, refs: &[(String, String)], objects: &str) -> String {
    let mut pack = repo.command("git");
    pack.current_dir(repo.path())
        .args(["pack-objects", "--stdout", "-q"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = pack.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(objects.as_bytes()).unwrap();
    drop(input);
    let pack = child.wait_with_output().unwrap();
    assert!(pack.status.success());

    let mut bytes = b"# v2 git bundle\n".to_vec();
    for (name, id) in refs {
        bytes.extend(format!("{id} {name}\n").into_bytes());
    }
    bytes.push(b'\n');
    bytes.extend(pack.stdout);
    let path = repo.beside("hostile.bundle");
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns the ids of all objects reachable from a commit, one per line.
fn objects(repo: &TestRepo, tip: &str) -> String {
    let listed = repo.git(&["rev-list", "--objects", tip]);
    let ids = listed.lines().map(|line| line.split(' ').next().unwrap());
    ids.map(|id| format!("{id}\n")).collect()
}

/// Checks that an import fails with these messages and leaves no ref, object or temporary file.
#[track_caller]
fn refused(into: &TestRepo, args: &[&str], words: &[&str]) {
    let state = || {
        let objects = into.git(&["cat-file", "--batch-check", "--batch-all-objects"]);
        (session_refs(into), objects, into.tree())
    };
    let before = state();
    let out = into.teddy(&[&["fetch"], args].concat());
    out.check(1, words);
    assert_eq!(state(), before, "{out}");

    let incoming = into.path().join(".git/teddy/incoming");
    let left = std::fs::read_dir(incoming).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{out}");
    let packs = into.path().join(".git/objects/pack");
    let files = std::fs::read_dir(packs).unwrap();
    let odd = files.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        let name = name.to_string_lossy();
        name.ends_with(".keep") || name.starts_with('.') || name.starts_with("tmp_")
    });
    assert_eq!(odd.count(), 0, "{out}");
}

#[test]
fn b5_a_bundle_that_is_cut_off_or_damaged_brings_nothing() {
    let repo = project();
    let file = bundle(&repo, &["--all"]);
    let whole = std::fs::read(&file).unwrap();
    let into = elsewhere();
    for (length, words) in [
        (0, "it is not a git bundle"),
        (10, "it is not a git bundle"),
        (40, "it is cut off"),
        (whole.len() / 2, "it is cut off"),
        (whole.len() - 1, "it is cut off"),
    ] {
        std::fs::write(&file, &whole[..length]).unwrap();
        refused(&into, &[&file], &[words, "hint: "]);
    }

    for at in [whole.len() / 3, whole.len() / 2, whole.len() - 30] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&file, &bytes).unwrap();
        refused(&into, &[&file], &["cannot import"]);
    }

    for text in ["", "hello\n", "# v9 git bundle\n\n", "# v2 git bundle\n\n"] {
        std::fs::write(&file, text).unwrap();
        refused(&into, &[&file], &[]);
    }
    refused(&into, &["/dev/zero"], &["it is not a regular file"]);
    refused(&into, &["."], &["there is no remote `.`"]);
    refused(&into, &["gone.bundle"], &["no such file or directory"]);
}

#[test]
fn b5_what_a_bundle_builds_on_must_be_here() {
    let repo = project();
    let base = repo.git(&["rev-parse", "main"]);
    let file = repo.beside("thin.bundle");
    let file = file.to_str().unwrap();
    let range = format!("^{base}");
    let name = "refs/teddy/sessions/first";
    repo.git(&["bundle", "create", "-q", file, name, &range]);
    let words = format!("it builds on commit {base}, which this repository does not have");
    refused(&elsewhere(), &[file], &[&words, "fetch what it builds on"]);

    // The import works in a repository that has the prerequisite.
    let clone = TestRepo::new();
    clone.git(&["pull", "-q", repo.path().to_str().unwrap(), "main"]);
    clone.done(&["fetch", file]);
    clone.done(&["verify"]);
}

#[test]
fn b5_missing_objects_are_missed() {
    let repo = project();
    let tip = repo.git(&["rev-parse", "teddy/sessions/first"]);
    let all = objects(&repo, &tip);
    let name = "refs/teddy/sessions/first".to_owned();
    for gone in [
        "teddy/sessions/first:report.md",
        "main",
        "main^{tree}",
        "main:a.txt",
    ] {
        let gone = repo.git(&["rev-parse", gone]);
        let some = all.replace(&format!("{gone}\n"), "");
        assert_ne!(some, all);
        let file = handmade(&repo, &[(name.clone(), tip.clone())], &some);
        refused(&elsewhere(), &[&file], &["cannot import"]);
    }

    let file = handmade(&repo, &[(name, tip)], &objects(&repo, "main"));
    refused(&elsewhere(), &[&file], &["cannot import"]);
}

#[test]
fn b5_a_graft_of_the_user_hides_no_missing_parent() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("one");
    repo.write("a.txt", "A\n");
    repo.commit("two");
    repo.workflow().new_session("first").done();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    let tip = repo.git(&["rev-parse", "teddy/sessions/first"]);
    let [parent, gone] = ["main", "main~1"].map(|name| repo.git(&["rev-parse", name]));
    let all = objects(&repo, &tip);
    let some = [&parent, &gone].iter().fold(all, |all, id| {
        assert!(all.contains(id.as_str()));
        all.replace(&format!("{id}\n"), "")
    });
    let refs = [("refs/teddy/sessions/first".to_owned(), tip)];
    let file = handmade(&repo, &refs, &some);

    // The parent is here, as a commit that no ref reaches, but not what it builds on.
    let into = elsewhere();
    let object = format!(".git/objects/{}/{}", &parent[..2], &parent[2..]);
    into.write(&object, std::fs::read(repo.path().join(&object)).unwrap());
    // git takes it for a commit without parents.
    into.write(".git/info/grafts", format!("{parent}\n"));
    refused(&into, &[&file], &["cannot import"]);
}

#[test]
fn b3_names_are_those_of_sessions() {
    let repo = project();
    let tip = repo.git(&["rev-parse", "teddy/sessions/first"]);
    let all = objects(&repo, &tip);
    let odd = |names: &[&str]| {
        let refs = names.iter().map(|name| ((*name).to_owned(), tip.clone()));
        handmade(&repo, &refs.collect::<Vec<_>>(), &all)
    };
    let into = elsewhere();
    let first = "refs/teddy/sessions/first";
    for name in [
        "First",
        "../../heads/main",
        "a b",
        "-x",
        "change",
        "x.lock",
        "é",
    ] {
        let file = odd(&[first, &format!("refs/teddy/sessions/{name}")]);
        refused(&into, &[&file], &["is not a valid session name"]);
    }
    refused(&into, &[&odd(&[first, first])], &["twice"]);
    refused(&into, &[&odd(&["refs/heads/main"])], &["has no session"]);

    // Refs that are not sessions are skipped and reported.
    let users = into.users();
    let names = [
        "HEAD",
        "refs/heads/main",
        "refs/teddy/published/main",
        first,
    ];
    insta::assert_snapshot!(into.printed(&["fetch", &odd(&names)]), @"
    first  2 turns  Two
    --- stderr
    warning: refs that are no session's were left out: HEAD, refs/heads/main, refs/teddy/published/main
    Imported 1 session. `teddy show -s first` shows it; `teddy switch --adopt first` makes it yours.
    exit code 0
    ");
    assert_eq!(session_refs(&into), format!("{first} {tip}"));
    assert_eq!(into.users(), users);
}

#[test]
fn b5_a_session_that_lies_is_refused_whatever_it_is_called() {
    let repo = project();
    let commit = repo.git(&["cat-file", "commit", "teddy/sessions/first"]);
    for (from, to, told) in [
        (
            "Teddy-Turn: 2",
            "Teddy-Turn: 7",
            "turn 2: `Teddy-Turn` is `7`",
        ),
        ("Teddy-Status: executed", "Teddy-Status: landed", "(T7)"),
    ] {
        repo.write("forged", format!("{}\n", commit.replace(from, to)));
        let id = repo.git(&["hash-object", "-t", "commit", "-w", "forged"]);
        repo.remove("forged");
        repo.git(&["update-ref", "refs/teddy/sessions/forged", &id]);
        let file = bundle(&repo, &["forged", "second"]);
        let into = elsewhere();
        let words = ["session `forged` fails verification", told];
        refused(&into, &[&file], &words);
        refused(&into, &[&file, "forged", "--as", "other"], &words);
        into.done(&["fetch", &file, "second"]);
    }

    // An ordinary commit is not a turn.
    repo.git(&["update-ref", "refs/teddy/sessions/forged", "main"]);
    let file = repo.beside("it.bundle");
    let file = file.to_str().unwrap();
    repo.git(&["bundle", "create", "-q", file, "refs/teddy/sessions/forged"]);
    refused(&elsewhere(), &[file], &["is not a turn of a session"]);
}

#[test]
fn b4_a_manifest_that_says_something_else_is_refused() {
    let repo = project();
    let blob = |text: &str| {
        repo.write("text", text);
        let id = repo.git(&["hash-object", "-w", "text"]);
        repo.remove("text");
        id
    };
    let tip = repo.git(&["rev-parse", "teddy/sessions/second"]);
    let said = |name: &str, tip: &str, signed: bool| {
        format!(
            r#"{{"schema":1,"teddy":"1","made":"","sessions":[{{"name":"{name}","tip":"{tip}","turns":1,"title":"","signed":{signed}}}]}}"#
        )
    };
    let main = repo.git(&["rev-parse", "main"]);
    for (text, words) in [
        (
            said("second", &main, false),
            "its manifest says something else",
        ),
        (
            said("second", &tip, true),
            "its manifest says something else",
        ),
        (
            said("other", &tip, false),
            "its manifest says something else",
        ),
        (r#"{"schema":2}"#.to_owned(), "has the version 2"),
        ("{".to_owned(), "`manifest.json` is malformed"),
    ] {
        let tree = format!("100644 blob {}\tmanifest.json", blob(&text));
        repo.write("tree", format!("{tree}\n"));
        let mut make = repo.command("sh");
        make.current_dir(repo.path());
        make.args(["-c", "git commit-tree -m x $(git mktree < tree)"]);
        let out = make.output().unwrap();
        repo.remove("tree");
        let commit = String::from_utf8(out.stdout).unwrap();
        let refs = [
            ("refs/teddy/manifest".to_owned(), commit.trim().to_owned()),
            ("refs/teddy/sessions/second".to_owned(), tip.clone()),
        ];
        let all = objects(&repo, &tip) + &objects(&repo, commit.trim());
        refused(&elsewhere(), &[&handmade(&repo, &refs, &all)], &[words]);
    }
}

#[test]
fn b5_signatures_and_drafts_are_those_of_their_session() {
    let repo = project();
    let tip = repo.git(&["rev-parse", "teddy/sessions/second"]);
    let head = repo.git(&["rev-parse", "main"]);
    let named = |what: &str, id: &str| (format!("refs/teddy/{what}/second"), id.to_owned());
    let tag = |of: &str, name: &str| {
        repo.write(
            "tag",
            format!("object {of}\ntype commit\ntag {name}\ntagger A <a@b> 1767322445 +0000\n\nx\n"),
        );
        let id = repo.git(&["hash-object", "-t", "tag", "-w", "tag"]);
        repo.remove("tag");
        id
    };
    let wrong = [
        named("signed", &tag(&head, "teddy/signed/second")),
        named("signed", &tag(&tip, "teddy/signed/other")),
        named("signed", &head),
        named("drafts", &head),
        named("drafts", &repo.git(&["rev-parse", "teddy/drafts/first"])),
    ];
    for one in wrong {
        let all = objects(&repo, &tip) + &objects(&repo, &one.1) + &format!("{}\n", one.1);
        let refs = [named("sessions", &tip), one];
        refused(&elsewhere(), &[&handmade(&repo, &refs, &all)], &[]);
    }
}

#[test]
fn t19_a_signature_that_is_no_tag_is_a_fault_of_its_session() {
    let repo = project();
    let tip = repo.git(&["rev-parse", "teddy/sessions/first"]);
    let refs = ["sessions", "signed"].map(|kind| (format!("refs/teddy/{kind}/first"), tip.clone()));
    let file = handmade(&repo, &refs, &objects(&repo, &tip));
    let words = "session `first` fails verification: its signature: ";
    refused(
        &elsewhere(),
        &[&file],
        &[words, "is a commit, not a tag (T19)"],
    );
}
