//! Files with `working-tree-encoding`, which are not UTF-8 on disk. A turn, an undo and a redo
//! write them as git does.

use teddy::workflow::restore::{OnOverlap, RestoreOptions};

use crate::plans::{plan, replace};
use crate::support::TestRepo;
use crate::support::overlay;

fn encoded(encoding: &str, text: &str) -> Vec<u8> {
    let mark = match encoding {
        "UTF-16" | "UTF-16LE-BOM" => "\u{feff}",
        _ => "",
    };
    let units: Vec<u16> = format!("{mark}{text}").encode_utf16().collect();
    let bytes = units.iter().map(|unit| match encoding {
        "UTF-16BE" => unit.to_be_bytes(),
        _ => unit.to_le_bytes(),
    });
    bytes.flatten().collect()
}

#[test]
fn utf_16_is_restored_as_it_was() {
    for encoding in ["UTF-16LE", "UTF-16BE", "UTF-16"] {
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
            let setting = format!("worktree.backend={backend}");
            overlay::run(&repo, &setting, script).check(0, &[]);
            let disk = |path: &str| std::fs::read(repo.path().join(path)).unwrap();
            assert_eq!(disk("seen.bin"), as_file("mine\n"), "{encoding} {backend}");
            if encoding != "UTF-16" {
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
        let script = "printf 'h\\0i\\0' > e.u; echo n > a";
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
