//! No snapshot and no turn has a tree that `git fsck --strict` and every import refuse.

use std::os::unix::fs::symlink;

use serde_json::json;

use teddy::text::git_file::refused;

use crate::plans::{create, edit, execute, plan};
use crate::support::{Output, TestRepo, sample};

#[test]
fn a_turn_records_no_tree_that_git_refuses() {
    for name in [".gitattributes", ".gitmodules"] {
        let repo = TestRepo::new()
            .file("a.txt", "1\n")
            .file(name, "# nothing\n");
        repo.commit("init");
        repo.workflow().new_session("one").done();
        let script = format!("rm {name}; mkdir {name}; echo x > {name}/x; echo 2 > a.txt");
        let out = repo.teddy_reads(&["execute", "-", "-y"], plan("One", &[execute(&script)]));
        assert_eq!(out.code, 0, "{out}");
        let report = repo.workflow().artifact("1", "report.md");
        let left = format!("`{name}`: a directory, and git requires a file of this name");
        assert!(report.contains(&left), "{report}");
        assert_eq!(
            repo.git(&["fsck", "--strict", "--no-dangling"]),
            "",
            "{name}"
        );

        // The user's own are left out, too.
        repo.remove(name);
        repo.write(&format!("{name}/mine"), "mine\n");
        repo.workflow()
            .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
        assert_eq!(repo.read(&format!("{name}/mine")), "mine\n");
        assert_eq!(
            repo.git(&["fsck", "--strict", "--no-dangling"]),
            "",
            "{name}"
        );
        let left = repo.workflow().status()["workspace"]["not_captured"].clone();
        assert_eq!(
            left,
            json!([{ "path": name, "reason": "a directory, and git requires a file of this name" }])
        );

        let below = plan("Three", &[create(&format!("sub/{name}/x"), "x\n")]);
        let refused = repo.workflow().execute_text(&below).refused();
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused.replace(name, "[name]"), @r#"
            The plan was not accepted: 1 mistake
            plan.md:14: CREATE [sub/[name]/x](/sub/[name]/x): `[name]` must be a file for git, so nothing can be in it: "[sub/[name]/x](/sub/[name]/x)"
                hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
            no model is configured to correct the plan
            turn 3 rejected
            plan.md:14: CREATE [sub/[name]/x](/sub/[name]/x): `[name]` must be a file for git, so nothing can be in it: "[sub/[name]/x](/sub/[name]/x)"
                hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
            "#);
        }
    }

    let repo = TestRepo::new().file(".gitmodules", "");
    repo.commit("init");
    repo.workflow().new_session("one").done();
    repo.remove(".gitmodules");
    symlink("elsewhere", repo.path().join(".gitmodules")).unwrap();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling"]), "");
}

/// Contents that git refuses, with the reason, and the file.
fn refused_contents() -> Vec<(&'static str, String, &'static str)> {
    let module = |text: &str| format!("[submodule \"a\"]\n\tpath = a\n\turl = ./a\n{text}\n");
    vec![
        (
            ".gitmodules",
            module("\turl = -u./x"),
            "git refuses the URL `-u./x` of submodule `a`",
        ),
        (
            ".gitmodules",
            module("\turl = https://host/%0ax"),
            "git refuses the URL `https://host/%0ax` of submodule `a`",
        ),
        (
            ".gitmodules",
            module("[submodule \"../b\"]\n\tpath = b"),
            "git refuses the submodule name `../b`",
        ),
        (
            ".gitmodules",
            module("\tpath = -b"),
            "git refuses the path `-b` of submodule `a`",
        ),
        (
            ".gitmodules",
            module("\tupdate = !touch x"),
            "git refuses the update command `!touch x` of submodule `a`",
        ),
        (
            ".gitattributes",
            format!("*.c text\n{} text\n", "x".repeat(2048)),
            "line 2 has 2048 bytes or more, which git refuses",
        ),
        (
            "sub/.gitattributes",
            format!("{} text\n", "x".repeat(3000)),
            "line 1 has 2048 bytes or more, which git refuses",
        ),
    ]
}

/// `git fsck --strict` must find nothing, and neither must an import of the session.
fn check_sound(repo: &TestRepo, case: &str) {
    let fsck = repo.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fsck, "", "{case}");
}

#[test]
fn p45_a_content_that_git_refuses_is_refused_in_a_plan() {
    let repo = TestRepo::new().file(".gitmodules", "[submodule \"a\"]\n\tpath = a\n");
    repo.commit("init");
    repo.workflow().new_session("one").done();
    repo.workflow().add(&[".gitmodules"]);
    let mut replies = Vec::new();
    let mut refuse = |text: &str| {
        let reply = repo.workflow().execute_text(text).refused();
        // The rest is about the loop, which counts the rejections.
        replies.extend(reply.lines().take(3).map(str::to_owned));
    };
    for (path, text, _) in refused_contents() {
        let create = match path {
            ".gitmodules" => create(path, &text).replace(
                "- **Description:**",
                "- **Overwrite:** true\n- **Description:**",
            ),
            _ => create(path, &text),
        };
        refuse(&plan("Create", &[create]));
    }
    refuse(&plan(
        "Edit",
        &[edit(".gitmodules", "path = a", "path = -a")],
    ));
    insta::assert_snapshot!(replies.join("\n"), @r"
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE .gitmodules: `.gitmodules`: git refuses the URL `-u./x` of submodule `a`
        hint: `git fsck --strict` and servers refuse such a file; write another content
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE .gitmodules: `.gitmodules`: git refuses the URL `https://host/%0ax` of submodule `a`
        hint: `git fsck --strict` and servers refuse such a file; write another content
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE .gitmodules: `.gitmodules`: git refuses the submodule name `../b`
        hint: `git fsck --strict` and servers refuse such a file; write another content
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE .gitmodules: `.gitmodules`: git refuses the path `-b` of submodule `a`
        hint: `git fsck --strict` and servers refuse such a file; write another content
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE .gitmodules: `.gitmodules`: git refuses the update command `!touch x` of submodule `a`
        hint: `git fsck --strict` and servers refuse such a file; write another content
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE .gitattributes: `.gitattributes`: line 2 has 2048 bytes or more, which git refuses
        hint: `git fsck --strict` and servers refuse such a file; write another content
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE sub/.gitattributes: `sub/.gitattributes`: line 1 has 2048 bytes or more, which git refuses
        hint: `git fsck --strict` and servers refuse such a file; write another content
    The plan was not accepted: 1 mistake
    plan.md:13: EDIT .gitmodules: `.gitmodules`: git refuses the path `-a` of submodule `a`
        hint: `git fsck --strict` and servers refuse such a file; write another content
    ");
    check_sound(&repo, "refused plans");
}

#[test]
fn what_a_command_writes_and_git_refuses_is_left_out_and_named() {
    for (number, (path, text, why)) in refused_contents().into_iter().enumerate() {
        // Each content in a new and in a tracked file, or some in one of them.
        for is_tracked in sample([false, true], 4, number) {
            let repo = TestRepo::on_disk()
                .file("a.txt", "1\n")
                .file("sub/b.txt", "b\n");
            if is_tracked {
                repo.write(path, "# nothing\n");
            }
            repo.commit("init");
            repo.workflow().new_session("one").done();
            let case = format!("{path}, {why}, {is_tracked}");
            let from = repo.beside("content");
            std::fs::write(&from, &text).unwrap();
            let script = format!("echo 2 > a.txt; cp {} {path}", from.display());
            repo.run_plan(&plan("Write", &[execute(&script)]));
            let report = repo.workflow().artifact("1", "report.md");
            assert!(
                report.contains(&format!("`{path}`: {why}")),
                "{case}: {report}"
            );
            assert_eq!(repo.read("a.txt"), "2\n", "{case}");
            check_sound(&repo, &case);

            // The user's own stays where it is.
            repo.write(path, &text);
            repo.workflow()
                .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
            assert_eq!(repo.read(path), text, "{case}");
            let left = repo.workflow().status()["workspace"]["not_captured"].clone();
            assert_eq!(left, json!([{ "path": path, "reason": why }]), "{case}");
            repo.workflow().undo(2).done();
            assert_eq!(repo.read(path), text, "{case}");
            check_sound(&repo, &case);

            // A content that git takes is recorded.
            repo.write(path, "# mine\n");
            repo.workflow()
                .run_plan(&plan("Three", &[create("three.txt", "3\n")]));
            let taken = repo.git(&["show", &format!("teddy/sessions/one^2:{path}")]);
            assert_eq!(taken, "# mine", "{case}");
        }
    }
}

/// A clone of such a repository is not made better by refusing to work in it.
#[test]
fn what_git_refuses_already_can_be_edited() {
    let line = "x".repeat(2048) + " text\n";
    let repo = TestRepo::new().file(".gitattributes", &line);
    repo.commit("init");
    repo.workflow().new_session("one").done();
    repo.workflow().add(&[".gitattributes"]);
    repo.write(".gitattributes", format!("{line}*.c text\n"));
    repo.workflow().run_plan(&plan(
        "Edit",
        &[edit(".gitattributes", "*.c text", "*.h text")],
    ));
    assert_eq!(repo.read(".gitattributes"), format!("{line}*.h text\n"));
    repo.workflow().undo(1).done();
    assert_eq!(repo.read(".gitattributes"), format!("{line}*.c text\n"));
}

/// `refused` has rules of git's own. git is asked about each of these contents.
#[test]
fn git_refuses_the_same_contents() {
    let url = |url: &str| (".gitmodules", format!("[submodule \"a\"]\nurl = {url}\n"));
    let text = |text: &str| (".gitmodules", text.to_owned());
    let mut contents: Vec<(&str, String)> = [
        "-u",
        "\"-u\"",
        "\\\"-u",
        "x -u",
        "\"\\n\"",
        "./%0a",
        "../../x%0Ay",
        "../:x",
        ".././/x",
        "./:x",
        "git://h/%0a",
        "git://h/x",
        "https://h",
        "https://",
        "https:///x",
        "https://h:80/x",
        "https://h:/x",
        "https://h:0/x",
        "https://h:65536/x",
        "https://h:8x/x",
        "https://h_1.-/x",
        "https://h!/x",
        "https://u:p@h/x",
        "https://u%zz@h/x",
        "https://[::1]:1/x",
        "https://h/%zz",
        "https://h/%0a",
        "https://h/..",
        "https://h/a/../b",
        "https://h/a/../../b",
        "https://h/x?%0a#y",
        "ftps://h/x",
        "http::x",
        "https::https://h/x",
        "https::https://h/%0a",
        "https::ssh://h/x",
        "ssh://h/%0a",
        "file:///%0a",
        "host:%0a",
    ]
    .map(url)
    .into();
    contents.extend(refused_contents().into_iter().map(|(path, text, _)| {
        let name = path.rsplit('/').next().unwrap();
        (name, text)
    }));
    contents.extend([
        text("[submodule \"a/..\"]\nx = 1\n"),
        text("[submodule \"a..\"]\nx = 1\n"),
        text("[submodule \"..\\\\a\"]\nx = 1\n"),
        text("[submodule \"\"]\nx = 1\n"),
        text("[submodule]\nurl = -x\n"),
        text("[submodule.A]\nurl = -x\n"),
        text("[Submodule \"a\"]URL=-x"),
        text("[submodule \"a\"]\nurl\npath\nupdate\n"),
        text("[submodule \"a\"]\n; url = -x\nurl = x ; -y\n"),
        text("[submodule \"a\"]\nurl = -x\n!!\n"),
        text("[submodule \"a\"]\n!!\nurl = -x\n"),
        text("[submodule \"a\"]\nurl = \\\n-x\n"),
        text("[submodule \"a\"]\nurl = \"-x\n"),
        text("\u{feff}[submodule \"a\"]\r\nurl = -x\r\n"),
        text("[submodule \"a\"]\nupdate = merge\npath = a-b\n"),
        (".gitattributes", "x".repeat(2047) + "\n"),
        (".gitattributes", "x".repeat(2048)),
        (".gitattributes", format!("\0{}\n", "x".repeat(2048))),
        (".GITATTRIBUTES", "x".repeat(2049)),
        ("gitmod~1", "[submodule \"..\"]\nx = 1\n".to_owned()),
    ]);

    let repo = TestRepo::new();
    let write = |args: &[&str], text: &str| {
        let mut git = repo.command("git");
        git.args(args);
        let out = repo.reads(git, text);
        assert_eq!(out.code, 0, "{text}: {out}");
        out.stdout.trim().to_owned()
    };
    let ids: Vec<String> = contents
        .iter()
        .map(|(name, text)| {
            let blob = write(&["hash-object", "-w", "--stdin"], text);
            write(&["mktree"], &format!("100644 blob {blob}\t{name}\n"));
            blob
        })
        .collect();
    let mut fsck = repo.command("git");
    fsck.current_dir(repo.path()).args(["fsck", "--strict"]);
    let found = Output::of(&mut fsck).to_string();
    for (blob, (name, text)) in ids.iter().zip(&contents) {
        let is_refused = refused(name, text.as_bytes()).is_some();
        let by_git = found.contains(&format!("error in blob {blob}"));
        assert_eq!(is_refused, by_git, "{name}: {text}\n{found}");
    }
}
