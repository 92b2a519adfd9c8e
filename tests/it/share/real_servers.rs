//! Push and fetch over real servers: what is transferred, and what happens on errors.

use std::sync::atomic::Ordering;

use crate::plans::{create, plan};
use crate::server::{Conduct, Daemon, WebServer};
use crate::support::TestRepo;
use crate::support::remotes::two_people;

const TEAMS: &str = include_str!("../../../docs/teams.md");

/// `ada:pass` in base64.
const ADA: &str = "YWRhOnBhc3M=";

/// Returns Ada, Ben and the directory with the bare repository that both have as `origin`.
fn people() -> (TestRepo, TestRepo, std::path::PathBuf) {
    let (ada, ben) = two_people();
    let root = ada.beside("");
    (ada, ben, root)
}

/// Changes the URL of a clone's `origin`.
fn point(repo: &TestRepo, origin: &str) {
    repo.git(&[
        "remote",
        "set-url",
        "origin",
        &format!("{origin}/server.git"),
    ]);
}

/// Pushes Ada's session directly to the bare repository.
fn send(ada: &TestRepo) {
    ada.git(&[
        "push",
        "-q",
        "origin",
        "refs/teddy/sessions/*:refs/teddy/sessions/*",
    ]);
}

#[test]
fn sessions_come_over_http_and_over_gits_own_protocol() {
    let (ada, ben, root) = people();
    send(&ada);
    let (web, daemon) = (
        WebServer::start(&ada, &root, Conduct::default()),
        Daemon::start(&ada, &root),
    );
    for origin in [&web.origin, &daemon.origin] {
        point(&ben, origin);
        let listed = ben.json(&["fetch", "-n"], 0);
        assert_eq!(
            listed["sessions"][0]["session"], "origin/add-auth",
            "{origin}"
        );
        ben.teddy(&["fetch", "origin", "add-auth"])
            .check(0, &["origin/add-auth  2 turns"]);
        ben.teddy(&["diff", "origin/add-auth:2"])
            .check(0, &["two.txt"]);
        ben.git(&["update-ref", "-d", "refs/teddy/remotes/origin/add-auth"]);
    }
}

#[test]
fn one_session_of_many_comes_without_the_others() {
    let (ada, ben, root) = people();
    send(&ada);
    let noise: String = (0..40_000_u32)
        .map(|n| format!("{:x}\n", n.wrapping_mul(2_654_435_761)))
        .collect();
    ada.run_plan(&plan("Large", &[create("large.txt", &noise)]));
    ada.git(&[
        "push",
        "-q",
        "origin",
        "refs/teddy/sessions/add-auth:refs/teddy/sessions/add-auth-large",
    ]);
    let web = WebServer::start(&ada, &root, Conduct::default());
    point(&ben, &web.origin);
    ben.done(&["fetch", "origin", "add-auth"]);
    let small = web.sent.load(Ordering::Relaxed);
    ben.done(&["fetch", "origin", "add-auth-large"]);
    let large = web.sent.load(Ordering::Relaxed) - small;
    assert!(small < 40_000 && large > 100_000, "{small}, {large}");
}

#[test]
fn a_refused_login_and_an_unreachable_server_have_different_errors() {
    let (ada, ben, root) = people();
    send(&ada);
    let conduct = Conduct {
        lets_in: Some(ADA),
        ..Conduct::default()
    };
    let web = WebServer::start(&ada, &root, conduct);
    point(&ben, &web.origin);
    let out = ben.teddy(&["fetch"]);
    out.check(1, &["remote `origin`", "git ls-remote origin"]);

    // The credentials are used and never shown.
    let origin = web.origin.replace("http://", "http://ada:pass@");
    point(&ben, &origin);
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    new        origin/add-auth  2 turns  Two
    exit code 0
    ");
    drop(web);
    let out = ben.teddy(&["fetch"]);
    out.check(1, &["remote `origin`", "try again"]);
    assert!(!out.to_string().contains("pass"), "{out}");
}

#[test]
fn a_connection_that_breaks_leaves_nothing_and_the_next_one_brings_it() {
    let (ada, ben, root) = people();
    send(&ada);
    let conduct = Conduct {
        drops_answer_after: Some(900),
        ..Conduct::default()
    };
    let web = WebServer::start(&ada, &root, conduct);
    point(&ben, &web.origin);
    let out = ben.teddy(&["fetch"]);
    assert_eq!(out.code, 1, "{out}");
    assert_eq!(ben.git(&["for-each-ref", "refs/teddy"]), "");
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    new        origin/add-auth  2 turns  Two
    exit code 0
    ");
    ben.teddy(&["verify", "origin/add-auth"]).check(0, &[]);
}

#[test]
fn a_partial_clone_has_what_a_fetched_session_recorded() {
    let (ada, ben, root) = people();
    send(&ada);
    let web = WebServer::start(&ada, &root, Conduct::default());
    let server = root.join("server.git");
    ada.git_in(&server, &["config", "uploadpack.allowFilter", "true"]);
    ada.git_in(
        &server,
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
    );
    point(&ben, &web.origin);
    ben.git(&["config", "remote.origin.promisor", "true"]);
    ben.git(&["config", "remote.origin.partialclonefilter", "blob:none"]);
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    new        origin/add-auth  2 turns  Two
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["show", "origin/add-auth:1"]), @"
    turn origin/add-auth:1 [id]
    Title:   One
    Status:  executed
    Agent:   assistant
    Date:    Fri Jan 2 03:04:05 2026 +0000

    # Execution Report: One
    - **Overall Status:** Completed 🟢
    - **Approved By:** the user beforehand, with `-y`
    - **Original Plan:** [.teddy/add-auth/01/plan.md](/.teddy/add-auth/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 1 Total / 1 Approved / 0 Skipped
    - **Outcomes:** 1 Succeeded / 0 Failed

    ## 1. Rationale
    ````text
    One, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `CREATE`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** created, 1 line
    - **File Path:** [one.txt](/one.txt)
    - **Description:** Make one.txt.

    Change of the file:
    ````diff
    --- /dev/null
    +++ b/one.txt
    @@ -0,0 +1 @@
    +1
    ````

    --- /dev/null
    +++ b/one.txt
    @@ -0,0 +1 @@
    +1
    exit code 0
    ");
}

#[test]
fn the_hook_of_the_page_for_teams_lets_sessions_only_grow() {
    let (ada, _, root) = people();
    let hook = TEAMS
        .split("```sh\n")
        .find(|block| block.starts_with("#!/bin/sh"))
        .unwrap();
    let hook = hook.split("```").next().unwrap();
    let path = root.join("server.git/hooks/update");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, hook).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    let session = "refs/teddy/sessions/add-auth";
    ada.git(&["push", "-q", "origin", &format!("{session}~1:{session}")]);
    ada.git(&["push", "-q", "origin", &format!("{session}:{session}")]);
    for refspec in [format!("+{session}~1:{session}"), format!(":{session}")] {
        let mut push = ada.command("git");
        let push = push
            .current_dir(ada.path())
            .args(["push", "-q", "origin", &refspec]);
        let said = push.output().unwrap();
        assert!(!said.status.success(), "{refspec}");
        assert!(String::from_utf8_lossy(&said.stderr).contains("sessions are only added to"));
    }
    ada.git(&["push", "-q", "origin", "+main~0:refs/heads/other"]);
    ada.git(&["push", "-q", "origin", ":refs/heads/other"]);

    // A session without code grows, and makes room for the same session with its code.
    ada.done(&["push", "-y", "--as", "other"]);
    ada.run_plan(&plan("Three", &[create("three.txt", "3\n")]));
    ada.done(&["push", "-y", "--as", "other"]);
    ada.done(&["push", "-y", "--as", "other", "--code"]);
    ada.teddy(&["push", "-y", "--delete", "other"])
        .check(1, &["sessions are only added to"]);
    let listed = ada.git(&["ls-remote", "origin", "refs/teddy/*"]);
    let names: Vec<_> = listed.split_whitespace().skip(1).step_by(2).collect();
    assert_eq!(names, [session, "refs/teddy/sessions/other"]);
}

#[test]
fn the_settings_of_the_page_for_teams_hide_what_it_says() {
    let (ada, _, root) = people();
    let server = root.join("server.git");
    let values = |setting: &str| {
        let row = format!("| `{setting}` | ");
        let (_, row) = TEAMS.split_once(&row).expect(setting);
        let cell = row.split(" | ").next().unwrap();
        cell.split('`').skip(1).step_by(2).collect::<Vec<_>>()
    };
    let refs = [
        "refs/teddy/bare/add-auth",
        "refs/teddy/bare/b",
        "refs/teddy/sessions/c",
        "refs/teddy/signed/c",
    ];
    let push = |place: &str| {
        let refspec = format!("main:{place}");
        let mut push = ada.command("git");
        push.current_dir(ada.path())
            .args(["push", "-q", "origin", &refspec]);
        push.output().unwrap().status.success()
    };
    let set = |setting: &str| {
        for value in values(setting) {
            ada.git_in(&server, &["config", "--add", setting, value]);
        }
    };
    let listed = || {
        let listed = ada.git(&["ls-remote", "origin", "refs/teddy/*"]);
        let names = listed.split_whitespace().skip(1).step_by(2);
        names.map(str::to_owned).collect::<Vec<_>>()
    };

    set("receive.hideRefs");
    assert_eq!(refs.map(push), [false, true, true, true]);
    ada.git_in(&server, &["config", "--unset-all", "receive.hideRefs"]);
    assert!(push(refs[0]));
    assert_eq!(listed(), refs);
    set("transfer.hideRefs");
    assert_eq!(listed(), refs[..2]);
}

#[test]
fn a_session_is_sent_over_http_and_over_gits_own_protocol() {
    let (ada, ben, root) = people();
    let server = root.join("server.git");
    ada.git_in(&server, &["config", "http.receivepack", "true"]);
    let (web, daemon) = (
        WebServer::start(&ada, &root, Conduct::default()),
        Daemon::start(&ada, &root),
    );
    point(&ada, &web.origin);
    ada.done(&["push", "-y"]);
    point(&ada, &daemon.origin);
    ada.done(&["push", "-y", "--code"]);
    point(&ben, &daemon.origin);
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    new        origin/add-auth  2 turns  Two
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["diff", "origin/add-auth:2"]), @"
    --- /dev/null
    +++ b/two.txt
    @@ -0,0 +1 @@
    +2
    exit code 0
    ");
}

#[test]
fn a_push_that_breaks_off_moves_nothing_and_the_next_one_sends_it() {
    let (ada, _, root) = people();
    let server = root.join("server.git");
    ada.git_in(&server, &["config", "http.receivepack", "true"]);
    let conduct = Conduct {
        drops_upload_after: Some(600),
        ..Conduct::default()
    };
    let web = WebServer::start(&ada, &root, conduct);
    point(&ada, &web.origin);
    let out = ada.teddy(&["push", "-y"]);
    out.check(1, &["remote `origin`", "push again"]);
    assert_eq!(ada.git_in(&server, &["for-each-ref", "refs/teddy"]), "");
    ada.done(&["push", "-y"]);
    let refs = ada.git_in(
        &server,
        &["for-each-ref", "--format=%(refname)", "refs/teddy"],
    );
    assert_eq!(refs, "refs/teddy/bare/add-auth");
}

#[test]
fn a_server_that_takes_branches_only_says_so() {
    let (ada, _, root) = people();
    let server = root.join("server.git");
    ada.git_in(&server, &["config", "receive.hideRefs", "refs/teddy"]);
    let out = ada.teddy(&["push", "-y"]);
    out.check(1, &["deny updating a hidden ref", "refs/teddy/"]);
    assert_eq!(ada.git_in(&server, &["for-each-ref", "refs/teddy"]), "");
}

#[test]
fn a_remote_named_as_in_git_push_has_a_hint() {
    let (ada, _, _) = people();
    insta::assert_snapshot!(ada.printed(&["push", "origin"]), @"
    --- stderr
    error: there is no session `origin`
    hint: `teddy push --remote origin` names the remote
    exit code 1
    ");
}
