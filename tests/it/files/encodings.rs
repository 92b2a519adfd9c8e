//! Files with `working-tree-encoding`, which are not UTF-8 on disk. A turn, an undo and a redo
//! write them as git does.

use teddy::workflow::restore::{OnOverlap, RestoreOptions};

use crate::plans::{create, execute, plan, replace};
use crate::support::overlay;
use crate::support::{Output, TestRepo};

fn encoded(encoding: &str, text: &str) -> Vec<u8> {
    let mark = match encoding {
        "UTF-16" | "UTF-16LE-BOM" | "UTF-32" => "\u{feff}",
        _ => "",
    };
    let text = format!("{mark}{text}");
    match encoding {
        "UTF-32" | "UTF-32LE" => text
            .chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect(),
        "UTF-32BE" => text
            .chars()
            .flat_map(|c| u32::from(c).to_be_bytes())
            .collect(),
        "UTF-16BE" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
    }
}

#[test]
fn a_wide_encoding_is_restored_as_it_was() {
    let wide = ["UTF-16LE", "UTF-16BE", "UTF-16", "UTF-16LE-BOM"];
    for encoding in wide.into_iter().chain(["UTF-32", "UTF-32LE", "UTF-32BE"]) {
        for backend in ["auto", "checkout"] {
            let as_file = |text: &str| encoded(encoding, text);
            let repo = TestRepo::new()
                .file(
                    ".gitattributes",
                    format!("*.rc working-tree-encoding={encoding}\n"),
                )
                .file("e.rc", as_file("hi\n"));
            repo.commit("one");
            assert_eq!(repo.git(&["cat-file", "blob", "HEAD:e.rc"]), "hi");
            repo.workflow().new_session("s").done();
            repo.write("e.rc", as_file("mine\n"));

            // The command sees the encoded file.
            let script = "cp e.rc seen.bin; cat e.rc seen.bin > both; mv both e.rc";
            let has_mark = !as_file("").is_empty();
            let setting = format!("worktree.backend={backend}");
            overlay::run(&repo, &setting, script).check(0, &[]);
            let disk = |path: &str| std::fs::read(repo.path().join(path)).unwrap();
            assert_eq!(disk("seen.bin"), as_file("mine\n"), "{encoding} {backend}");
            if !has_mark {
                assert_eq!(
                    disk("e.rc"),
                    as_file("mine\nmine\n"),
                    "{encoding} {backend}"
                );
            }
            let workflow = || repo.workflow().setting("worktree.backend", backend);
            workflow().undo(1).done();
            assert_eq!(disk("e.rc"), as_file("mine\n"), "{encoding} {backend}");
            workflow().redo(1).done();
            let exact = RestoreOptions {
                on_overlap: OnOverlap::Exact,
                ..RestoreOptions::default()
            };
            workflow().restore_with("0", &exact).done();
            assert_eq!(disk("e.rc"), as_file("mine\n"), "{encoding} {backend}");
        }
    }
}

/// Bug: a file that git could not encode made every later turn fail, even one that would have fixed
/// the file.
#[test]
fn a_file_that_does_not_fit_its_encoding_is_left_alone() {
    for backend in ["auto", "checkout"] {
        let repo = TestRepo::new()
            .file(".gitattributes", "*.u working-tree-encoding=UTF-16\n")
            .file("e.u", "abc")
            .file("a", "a\n");
        repo.git(&["add", ".gitattributes", "a"]);
        repo.git(&["commit", "-q", "-m", "one"]);
        repo.workflow().new_session("s").done();
        let setting = format!("worktree.backend={backend}");
        let script = "printf '\\377\\376h\\0' > e.u; echo n > a";
        let out = overlay::run(&repo, &setting, script);
        assert_eq!(out.code, 4, "{backend}: {out}");
        repo.workflow().recover().done();
        assert_eq!(
            (repo.read("e.u"), repo.read("a")),
            ("abc".to_owned(), "a\n".to_owned())
        );
        repo.workflow()
            .run_plan(&plan("Go on", &[replace("a", "m\n")]));
        assert_eq!(repo.read("a"), "m\n");
    }
}

/// Bytes that are a text in some encodings and damaged in others.
const CONTENTS: [&[u8]; 22] = [
    b"",
    b"a\0",
    b"\0a",
    b"abc",
    b"a\0\0\0",
    b"\0\0\0a",
    b"\xff\xfe",
    b"\xff\xfea\0",
    b"\xfe\xff\0a",
    b"\xff\xfea\0\0",
    b"\xff\xfe\r\0\n\0",
    b"\xff\xfe\xff\xfea\0",
    b"\xff\xfe\0\xd8a\0",
    b"\0\xd8\0\xdc",
    b"\xd8\0\xdc\0",
    b"\xff\xfe\0\0",
    b"\xff\xfe\0\0a\0\0\0",
    b"\0\0\xfe\xff\0\0\0a",
    b"\xff\xfe\0\0\0\xd8\0\0",
    b"\xff\xfe\0\0\0\0\x11\0",
    b"\xff\xfe\0\0a\0\0",
    b"\0\0\xfe\xff\0\0\xfe\xff",
];

/// Bug: files in some of these encodings were in no snapshot, and others were recorded although git
/// refuses them.
#[test]
fn a_wide_encoding_is_recorded_as_by_git() {
    let short = [
        "UTF-16",
        "UTF-16LE",
        "utf16be",
        "UTF-16LE-BOM",
        "UTF-16BE-BOM",
    ];
    for encoding in short.into_iter().chain(["UTF-32", "UTF-32LE", "utf32be"]) {
        let rule = format!("f* text=auto working-tree-encoding={encoding}\n");
        let repo = TestRepo::new().file(".gitattributes", rule);
        repo.commit("one");
        repo.workflow().new_session("s").done();
        let names: Vec<String> = (0..CONTENTS.len()).map(|at| format!("f{at:02}")).collect();
        for (name, bytes) in names.iter().zip(CONTENTS) {
            repo.write(name, bytes);
        }
        repo.workflow().record("by hand").done();

        let mut by_git = String::new();
        let mut refused = Vec::new();
        for name in &names {
            let mut hash = repo.command("git");
            hash.current_dir(repo.path())
                .args(["hash-object", "-w", "--path", name, name]);
            let out = Output::of(&mut hash);
            match out.code {
                0 => by_git += &format!("{} {name}\n", out.stdout.trim()),
                _ => refused.push(name.clone()),
            }
        }
        let format = "--format=%(objectname) %(path)";
        let recorded = repo.git(&["ls-tree", format, "teddy/sessions/s^2"]);
        let recorded: String = recorded
            .lines()
            .filter(|line| !line.ends_with(".gitattributes"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(recorded, by_git, "{encoding}");
        let status = repo.workflow().status();
        let left_out = status["workspace"]["not_captured"].as_array().unwrap();
        let left_out: Vec<_> = left_out.iter().map(|file| file["path"].clone()).collect();
        assert_eq!(left_out, refused, "{encoding}");
    }
}

/// Blobs that git writes converted, or as they are if they are no UTF-8.
#[test]
fn a_wide_encoding_is_checked_out_as_by_git() {
    let short = [
        "UTF-16",
        "UTF-16LE",
        "UTF-16BE",
        "UTF-16LE-BOM",
        "UTF-16BE-BOM",
    ];
    for encoding in short.into_iter().chain(["UTF-32", "UTF-32LE", "UTF-32BE"]) {
        let repo = TestRepo::new();
        let blobs: [&[u8]; 6] = [
            b"",
            b"a\n",
            "\u{feff}a".as_bytes(),
            "\u{1f600}".as_bytes(),
            b"aa\xff",
            b"\xed\xa0\x80",
        ];
        for (at, blob) in blobs.iter().enumerate() {
            repo.write(&format!("f{at}"), blob);
        }
        repo.commit("as they are");
        repo.write(
            ".gitattributes",
            format!("f* -text working-tree-encoding={encoding}\n"),
        );
        repo.git(&["add", ".gitattributes"]);
        repo.git(&["commit", "-q", "-m", "encoded"]);
        repo.git(&["checkout", "-q", "HEAD^"]);
        repo.git(&["checkout", "-q", "-f", "main"]);
        for at in 0..blobs.len() {
            repo.remove(&format!("f{at}"));
        }
        repo.git(&["checkout", "-q", "-f", "HEAD", "."]);
        let by_git = overlay::files(&repo.path());

        repo.workflow().new_session("s").done();
        let setting = "worktree.backend=checkout";
        overlay::run(
            &repo,
            setting,
            "mkdir seen; for f in f?; do cp $f seen/s$f; done",
        )
        .check(0, &[]);
        for at in 0..blobs.len() {
            let seen = std::fs::read(repo.path().join(format!("seen/sf{at}"))).unwrap();
            assert_eq!(seen, by_git[&format!("f{at}")], "{encoding} {at}");
        }
    }
}

/// Bug: a redo of a turn that adds an encoding failed if an own file was not in it.
#[test]
fn an_own_file_that_is_not_in_a_new_encoding_stays() {
    let repo = TestRepo::new().file("a.u", "abc\n");
    repo.commit("one");
    repo.workflow().new_session("s").done();
    let rule = create(".gitattributes", "*.u working-tree-encoding=UTF-16\n");
    repo.workflow().run_plan(&plan("Add an encoding", &[rule]));
    repo.workflow().undo(1).done();
    repo.write("a.u", "mine\n");
    repo.workflow().redo(1).done();
    assert_eq!(repo.read("a.u"), "mine\n");
    assert!(repo.path().join(".gitattributes").exists());
}

/// Bug: the report named the file only before the command changed it.
#[test]
fn a_change_to_a_file_that_cannot_be_converted_is_named() {
    for backend in ["auto", "checkout"] {
        let repo = TestRepo::new()
            .file("e.u", "abc\n")
            .file(".gitattributes", "*.u working-tree-encoding=UTF-7\n");
        repo.commit("one");
        repo.workflow().new_session("s").done();
        let setting = format!("worktree.backend={backend}");
        for text in ["d", "e"] {
            let out = overlay::run(&repo, &setting, &format!("echo {text} > e.u"));
            let named = "`e.u` is not recorded: unreadable: TeDDy cannot convert its `working-tree-encoding`";
            out.check(0, &[named]);
            assert_eq!(repo.read("e.u"), "abc\n", "{backend}");
        }
        let out = overlay::run(&repo, &setting, "true");
        assert!(!out.stderr.contains("e.u"), "{backend}: {out}");
    }
}

/// Bug: gix only reads little-endian UTF-16, so TeDDy recorded other characters.
#[test]
fn utf_16_with_the_higher_byte_first_is_recorded_as_git_stores_it() {
    let big = |text: &str| {
        let units = format!("\u{feff}{text}");
        let units: Vec<u16> = units.encode_utf16().collect();
        units
            .into_iter()
            .flat_map(u16::to_be_bytes)
            .collect::<Vec<u8>>()
    };
    let repo = TestRepo::new()
        .file(".gitattributes", "*.rc working-tree-encoding=UTF-16\n")
        .file("e.rc", encoded("UTF-16", "a\nb\n"));
    repo.commit("init");
    repo.workflow().new_session("s").done();
    repo.write("e.rc", encoded("UTF-16", "a\nB\n"));
    repo.workflow().record("by hand").done();

    repo.write("e.rc", big("a\nB\n"));
    assert_eq!(
        repo.workflow().status()["workspace"]["changed"],
        serde_json::json!([])
    );
    repo.workflow().undo(1).done();
    assert_eq!(
        std::fs::read(repo.path().join("e.rc")).unwrap(),
        big("a\nb\n")
    );
}

/// Bug: attributes with an encoding for all files were left out of the turn themselves, and its other
/// files were garbled.
#[test]
fn attributes_that_a_command_writes_are_never_encoded() {
    for (encoding, text) in [("UTF-16", "keep\n"), ("UTF-16BE", "kee\n")] {
        let repo = TestRepo::new().file("a.txt", "keep\n");
        repo.commit("init");
        repo.done(&["new", "demo"]);
        let attributes = format!("* working-tree-encoding={encoding}\n");
        let script = format!(
            "printf '{}' > .gitattributes; echo kee > a.txt",
            attributes.trim_end().to_owned() + "\\n"
        );
        repo.run_plan(&plan("Encode", &[execute(&script)]));
        assert_eq!(repo.read(".gitattributes"), attributes);
        assert_eq!(repo.read("a.txt"), text, "{encoding}");
        repo.done(&["undo"]);
        assert_eq!(repo.read("a.txt"), "keep\n", "{encoding}");
    }
}
