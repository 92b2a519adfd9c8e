//! Git trees of a few hundred bytes that expand to millions of files, because each level contains
//! the next one ten times.

use std::io::Write as _;
use std::process::Stdio;

use crate::support::remotes::session_refs;
use crate::support::remotes::two_people;
use crate::support::web::Web;
use crate::support::{Output, TestRepo};

const SESSION: &str = "teddy/sessions/add-auth";
/// The message about a turn with too many files.
const TOO_MANY: &str = "more than 65536 files and directories";
/// The message about code with too many files.
const TOO_DIFFERENT: &str = "they differ in more than 1000000 files and directories";

/// Runs git with this input. Returns stdout.
fn git_reads(repo: &TestRepo, args: &[&str], text: &str) -> String {
    let mut git = repo.command("git");
    git.current_dir(repo.path()).args(args);
    let mut child = git
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Each of the levels contains the next one ten times.
fn bomb(repo: &TestRepo, levels: usize) -> String {
    let blob = git_reads(repo, &["hash-object", "-w", "--stdin"], "x");
    let ten = |kind: &str, id: &str| {
        let lines = (0..10).map(|at| format!("{kind} {id}\t{at}\n"));
        git_reads(repo, &["mktree"], &lines.collect::<String>())
    };
    let files = ten("100644 blob", &blob);
    (1..levels).fold(files, |tree, _| ten("040000 tree", &tree))
}

/// Adds a directory to a tree.
fn with_folder(repo: &TestRepo, tree: &str, folder: &str) -> String {
    let listed = repo.git(&["ls-tree", tree]);
    let lines = format!("{listed}\n040000 tree {folder}\textra\n");
    git_reads(repo, &["mktree"], &lines)
}

fn commit(repo: &TestRepo, tree: &str, parents: &[String], message: &str) -> String {
    let mut args = vec!["commit-tree", tree, "-m", message];
    for parent in parents {
        args.extend(["-p", parent]);
    }
    repo.git(&args)
}

/// Forges the newest turn with this tree, and with `after` as its code, if given.
fn forged(repo: &TestRepo, tree: &str, after: Option<&str>) -> String {
    let message = repo.git(&["log", "-1", "--format=%B", SESSION]);
    let parents = repo.git(&["log", "-1", "--format=%P", SESSION]);
    let mut parents: Vec<String> = parents.split(' ').map(str::to_owned).collect();
    if let Some(after) = after {
        after.clone_into(&mut parents[1]);
    }
    commit(repo, tree, &parents, &message)
}

/// The turn's own tree is a bomb.
fn with_many_artifacts(repo: &TestRepo) -> String {
    let tree = with_folder(repo, &format!("{SESSION}^{{tree}}"), &bomb(repo, 7));
    forged(repo, &tree, None)
}

/// Adds or replaces an entry of a tree.
fn with_entry(repo: &TestRepo, tree: &str, entry: &str, name: &str) -> String {
    let end = format!("\t{name}");
    let listed = repo.git(&["ls-tree", tree]);
    let kept = listed.lines().filter(|line| !line.ends_with(&end));
    let lines: String = kept.map(|line| format!("{line}\n")).collect();
    git_reads(repo, &["mktree"], &format!("{lines}{entry}{end}\n"))
}

/// Replaces a file of the newest turn, and its code, if given.
fn with_file(repo: &TestRepo, name: &str, text: &str, after: Option<&str>) -> String {
    let blob = git_reads(repo, &["hash-object", "-w", "--stdin"], text);
    let (mut entry, mut name) = (format!("100644 blob {blob}"), name);
    if let Some((folder, file)) = name.split_once('/') {
        let tree = with_entry(repo, &format!("{SESSION}:{folder}"), &entry, file);
        (entry, name) = (format!("040000 tree {tree}"), folder);
    }
    let tree = with_entry(repo, SESSION, &entry, name);
    forged(repo, &tree, after)
}

/// The turn's code is a bomb.
fn with_much_code(repo: &TestRepo) -> String {
    let code = with_folder(repo, &format!("{SESSION}^2^{{tree}}"), &bomb(repo, 7));
    let old = repo.git(&["rev-parse", &format!("{SESSION}^2")]);
    let new = commit(repo, &code, &[format!("{SESSION}^2^")], "after");
    let meta = repo.git(&["show", &format!("{SESSION}:meta.yaml")]);
    with_file(repo, "meta.yaml", &meta.replace(&old, &new), Some(&new))
}

/// Returns empty lines of this size, followed by text.
fn lines(mib: usize) -> String {
    "\n".repeat(mib << 20) + "words\n"
}

/// Changes the message of the newest turn, or that of its publication.
fn with_words(repo: &TestRepo, change: &dyn Fn(&str) -> String, publication: bool) -> String {
    let mut parents = repo.git(&["log", "-1", "--format=%P", SESSION]);
    let mut message = repo.git(&["log", "-1", "--format=%B", SESSION]);
    match publication {
        true => {
            let old = repo.git(&["rev-parse", &format!("{SESSION}^3")]);
            let text = change(&repo.git(&["log", "-1", "--format=%B", &old]));
            let tree = format!("{old}^{{tree}}");
            let new = git_reads(repo, &["commit-tree", &tree, "-p", &old], &text);
            parents = parents.replace(&old, &new);
        }
        false => message = change(&message),
    }
    let mut args = vec!["commit-tree".to_owned(), format!("{SESSION}^{{tree}}")];
    args.extend(
        parents
            .split(' ')
            .flat_map(|id| ["-p", id])
            .map(str::to_owned),
    );
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    git_reads(repo, &args, &message)
}

/// Checks that the program exited normally.
#[track_caller]
fn ended(out: &Output) {
    assert!((0..6).contains(&out.code), "{out}");
    assert!(!out.stderr.contains("panicked"), "{out}");
}

#[test]
fn a_session_with_millions_of_files_is_not_taken_and_the_others_are() {
    let (ada, ben) = two_people();
    let honest = ada.git(&["rev-parse", SESSION]);
    for (forged, words, rule) in [
        (with_many_artifacts(&ada), TOO_MANY, "(T5)"),
        (with_much_code(&ada), TOO_DIFFERENT, "(T9)"),
    ] {
        ada.git(&[
            "push",
            "-qf",
            "origin",
            &format!("{honest}:refs/teddy/sessions/add-auth"),
        ]);
        ada.git(&[
            "push",
            "-qf",
            "origin",
            &format!("{forged}:refs/teddy/sessions/bomb"),
        ]);
        let out = ben.teddy(&["fetch"]);
        out.check(
            1,
            &[
                "`refs/teddy/sessions/bomb` of `origin` was not taken",
                words,
                rule,
            ],
        );
        let refs = ben.git(&["for-each-ref", "--format=%(refname)", "refs/teddy"]);
        assert_eq!(refs, "refs/teddy/remotes/origin/add-auth", "{out}");
        ben.done(&["show", "origin/add-auth"]);
    }
}

#[test]
fn what_a_turn_says_without_end_is_refused_in_few_words() {
    let (ada, ben) = two_people();
    let meta = ada.git(&["show", &format!("{SESSION}:meta.yaml")]);
    let with_list = |list: &str| {
        let text = meta.replace("synced: true", &format!("synced: true\n  overlaps: {list}"));
        with_file(&ada, "meta.yaml", &text, None)
    };
    let many = with_list(&format!("[{}]", "a,".repeat(100_001)));
    let aliases = with_list(&format!(
        "[&a {}{}]",
        "a".repeat(3 << 20),
        ",*a".repeat(100)
    ));
    let agent =
        |text: &str| text.replace("Teddy-Agent: ", &"Teddy-Agent: ".to_owned().repeat(9999));
    let agent = with_words(&ada, &agent, false);
    let long = |text: &str| format!("{text}{}", " ".repeat(64 << 20));
    let publication = with_words(&ada, &long, true);
    let left = format!("\"left\": [{}\"a\"],", "\"a\",".repeat(1_000_000));
    let left = |text: &str| text.replacen("\"applied\"", &format!("{left} \"applied\""), 1);
    let left = with_words(&ada, &left, true);

    let list = "a list has more than 100000 entries";
    for (forged, words) in [
        (many, [list, "(T8)"]),
        (aliases, [list, "(T8)"]),
        (agent, ["`Teddy-Agent` is `Teddy-Agent: ", "(T7)"]),
        (publication, ["its third parent: publication", "(T3)"]),
        (left, ["its third parent", "is not a publication (T3)"]),
    ] {
        let to = format!("{forged}:refs/teddy/sessions/bomb");
        ada.git(&["push", "-qf", "origin", &to]);
        let out = ben.teddy(&["fetch"]);
        out.check(1, &["`refs/teddy/sessions/bomb` of `origin` was not taken"]);
        out.check(1, &words);
        assert!(out.stderr.len() < 2000, "{out}");
    }
}

#[test]
fn what_is_parsed_or_shown_whole_has_an_end() {
    let (ada, ben) = two_people();
    let report = ada.git(&["show", &format!("{SESSION}:report.md")]);
    let next = ada.git(&["show", &format!("{SESSION}:next/meta.yaml")]);
    let [report, next] = [(report, 9), (next, 5)].map(|(text, size)| text + &lines(size));
    for (name, text, words) in [
        ("report.md", &report, "at most 8388608 are read of it (T5)"),
        (
            "next/question.md",
            &lines(2),
            "at most 1048576 are read of it (T5)",
        ),
        (
            "next/conclusion.md",
            &lines(2),
            "at most 1048576 are read of it (T5)",
        ),
        (
            "next/meta.yaml",
            &next,
            "no more than 4194304 are read (T6)",
        ),
    ] {
        let forged = with_file(&ada, name, text, None);
        let to = format!("{forged}:refs/teddy/sessions/long");
        ada.git(&["push", "-qf", "origin", &to]);
        let out = ben.teddy(&["fetch"]);
        out.check(1, &["`refs/teddy/sessions/long` of `origin` was not taken"]);
        out.check(1, &[&format!("`{name}` has"), words]);
        assert_eq!(out.stderr.matches(name).count(), 1, "{out}");
    }

    // Turns that did not come by `fetch` are truncated for display.
    for (name, text, command) in [
        ("report.md", &report, &["show", "--no-patch"][..]),
        ("next/question.md", &lines(2), &["status"]),
        ("next/conclusion.md", &lines(2), &["status"]),
    ] {
        let honest = ada.git(&["rev-parse", SESSION]);
        let reference = format!("refs/{SESSION}");
        ada.git(&["update-ref", &reference, &with_file(&ada, name, text, None)]);
        let out = ada.teddy(command);
        out.check(0, &[]);
        assert!(out.stdout.contains("(cut here)"), "{name}");
        assert!(out.stdout.len() < text.len(), "{name}");
        ada.git(&["update-ref", &reference, &honest]);
    }
}

#[test]
fn an_endless_title_is_truncated_for_display() {
    let (ada, ben) = two_people();
    let long = |text: &str| text.replacen("Two", &"S".repeat(3_000_000), 1);
    let forged = with_words(&ada, &long, false);
    let to = format!("{forged}:refs/teddy/sessions/long");
    ada.git(&["push", "-qf", "origin", &to]);
    for args in [
        &["fetch"][..],
        &["sessions", "-r"],
        &["log", "origin/long"],
        &["show", "origin/long"],
    ] {
        let out = ben.teddy(args);
        out.check(0, &[]);
        assert!(out.to_string().len() < 5000, "{args:?}");
    }
}

#[test]
fn a_bundle_with_millions_of_files_is_refused_and_leaves_nothing() {
    let (ada, ben) = two_people();
    let file = ada.beside("bomb.bundle");
    let file = file.to_str().unwrap();
    for (forged, words) in [
        (with_many_artifacts(&ada), TOO_MANY),
        (with_much_code(&ada), TOO_DIFFERENT),
    ] {
        ada.git(&["update-ref", "refs/teddy/sessions/bomb", &forged]);
        ada.git(&["bundle", "create", "-q", file, "refs/teddy/sessions/bomb"]);
        ben.teddy(&["fetch", file])
            .check(1, &["session `bomb` fails verification", words]);
        assert_eq!(session_refs(&ben), "");
        let incoming = ben.path().join(".git/teddy/incoming");
        assert_eq!(std::fs::read_dir(incoming).map_or(0, Iterator::count), 0);
    }
}

#[test]
fn every_command_survives_a_turn_with_millions_of_files() {
    let (ada, _) = two_people();
    let bomb = with_many_artifacts(&ada);
    ada.git(&["update-ref", "refs/teddy/sessions/add-auth", &bomb]);
    let folder = ada.beside("out");
    let folder = folder.to_str().unwrap();
    for args in [
        &["show", "2"][..],
        &["find", "hello"],
        &["context"],
        &["export", folder],
        &["export", "--html", folder],
        &["verify", "--rerun", "2", "-y"],
        &["gc", "-y"],
        &["log"],
        &["status"],
        &["push", "-n"],
        &["browse", "--json"],
    ] {
        ended(&ada.teddy(args));
    }
    ada.teddy(&["verify"]).check(1, &[TOO_MANY]);
    ada.teddy(&["doctor"]).check(1, &[TOO_MANY]);
}

#[test]
fn every_command_survives_code_of_millions_of_files() {
    let (ada, _) = two_people();
    let bomb = with_much_code(&ada);
    ada.git(&["update-ref", "refs/teddy/sessions/add-auth", &bomb]);
    for args in [&["show", "2"][..], &["undo", "-y"], &["browse", "--json"]] {
        ended(&ada.teddy(args));
    }
    ada.teddy(&["verify"]).check(1, &[TOO_DIFFERENT]);
    // The other turns are still listed.
    let rows = ada.done(&["log"]);
    assert!(rows.contains("(too many files to list)"), "{rows}");
    assert!(rows.contains("One (1 file)"), "{rows}");

    let web = Web::start(&ada, &[]);
    let pages = ["s/add-auth/2.html", "s/add-auth/", "s/add-auth/1.html"].map(|page| web.get(page));
    assert!(pages[0].body.contains(TOO_DIFFERENT), "{}", pages[0].body);
    assert!(pages[1].body.contains("too many files to list"));
    assert!(pages[2].body.contains("one.txt"), "{}", pages[2].body);
}
