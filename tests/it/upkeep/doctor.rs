//! `doctor`: reports each problem where it exists and nowhere else. `--fix` makes harmless changes
//! only.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::fake::{Fake, response};
use crate::plans::{create, execute, plan};
use crate::support::landing::project;
use crate::support::{Output, PATIENCE, TestRepo};

/// A session of one turn, without any finding.
fn healthy() -> TestRepo {
    let repo = project();
    repo.reply("an answer");
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    repo.git(&["config", "log.excludeDecoration", "refs/teddy/"]);
    repo
}

#[track_caller]
fn value(out: &Output) -> Value {
    serde_json::from_str(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Checks the exit code, and returns the findings under a name.
#[track_caller]
fn findings_named(out: &Output, name: &str) -> Vec<String> {
    let report = value(out);
    let problems = report["problems"].as_u64().unwrap();
    assert_eq!(out.code, i32::from(problems > 0), "{out}");
    findings(&report["checks"], name)
}

/// Returns the findings under a name as `state: reason`.
#[track_caller]
fn findings(checks: &Value, name: &str) -> Vec<String> {
    let checks = checks.as_array().unwrap().iter();
    let checks = checks.filter(|check| check["name"] == name && check["state"] != "ok");
    checks
        .map(|check| {
            assert!(check["group"].as_str().is_some_and(|name| !name.is_empty()));
            let text = |key: &str| check[key].as_str().unwrap().to_owned();
            format!("{}: {}", text("state"), text("reason"))
        })
        .collect()
}

#[track_caller]
fn found(repo: &TestRepo, name: &str) -> Vec<String> {
    findings(&repo.workflow().examine(), name)
}

/// Checks that there is exactly one finding under a name, with this state and text.
#[track_caller]
fn check(repo: &TestRepo, name: &str, (state, words): (&str, &str)) {
    one(&found(repo, name), (state, words));
}

/// Checks that there is exactly one finding.
#[track_caller]
fn one(found: &[String], (state, words): (&str, &str)) {
    let is_it = |line: &String| line.starts_with(&format!("{state}: ")) && line.contains(words);
    assert!(found.len() == 1 && is_it(&found[0]), "{found:#?}");
}

/// Checks that there is no finding under a name.
#[track_caller]
fn well(repo: &TestRepo, name: &str) {
    assert_eq!(found(repo, name), Vec::<String>::new());
}

/// Returns the remedy of the only finding under a name.
#[track_caller]
fn remedy(repo: &TestRepo, name: &str) -> String {
    let report = repo.workflow().examine();
    let checks = report.as_array().unwrap().iter();
    let mut ill = checks.filter(|check| check["name"] == name && check["state"] != "ok");
    let remedy = ill.next().unwrap()["remedy"].as_str().unwrap().to_owned();
    assert!(ill.next().is_none(), "{report:#}");
    remedy
}

/// Runs a command line that a user would copy.
#[track_caller]
fn copied(repo: &TestRepo, line: &str) {
    let out = Output::of(
        repo.command("sh")
            .current_dir(repo.path())
            .args(["-c", line]),
    );
    assert_eq!(out.code, 0, "{line}: {out}");
}

/// Runs `doctor` with a variable changed.
fn with(repo: &TestRepo, variable: &str, value: &str) -> Output {
    let mut command = repo.teddy_command(&["doctor", "--json"]);
    Output::of(command.env(variable, value).current_dir(repo.path()))
}

/// Sets the time of a file to the past.
fn age(path: &Path) {
    let file = std::fs::File::options().append(true).open(path).unwrap();
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(then).unwrap();
}

#[test]
fn without_problems_each_group_has_one_line() {
    let repo = healthy();
    let out = repo.teddy(&["doctor"]);
    assert_eq!(out.code, 0, "{out}");
    for group in [
        "settings",
        "model",
        "git",
        "worktrees",
        "sessions",
        "agents",
    ] {
        let mut lines = out.stdout.lines();
        let line = lines.find(|line| line.starts_with(group));
        let line = line.unwrap_or_else(|| panic!("{group}: {out}"));
        assert!(line.split_whitespace().nth(1) == Some("ok"), "{out}");
    }
    assert!(
        out.stdout.contains("1 session, the newest turns sound"),
        "{out}"
    );
    let all = repo.teddy(&["doctor", "-v"]);
    assert!(all.stdout.contains("no command is running"), "{all}");
}

#[test]
fn it_works_without_a_repository_and_in_a_bare_one() {
    let repo = healthy();
    let outside = repo.teddy_in(&repo.beside("home"), &["doctor", "--json"]);
    one(
        &findings_named(&outside, "repository"),
        ("note", "is not in a git repository"),
    );
    assert_eq!(outside.code, 0, "{outside}");

    repo.git(&["clone", "-q", "--mirror", ".", "../bare.git"]);
    let bare = repo.teddy_in(&repo.beside("bare.git"), &["doctor", "--json"]);
    one(
        &findings_named(&bare, "push"),
        ("warning", "`remote.origin.mirror` is set"),
    );
    one(
        &findings_named(&bare, "fetch"),
        ("note", "overwrites the sessions here"),
    );
    assert!(
        bare.stdout.contains("1 session, the newest turns sound"),
        "{bare}"
    );
    assert_eq!(findings_named(&bare, "repository"), [""; 0]);
    assert!(!bare.stdout.contains("commands run"), "{bare}");
}

#[test]
fn a_repository_that_cannot_be_opened_is_a_finding() {
    let repo = healthy();
    repo.git(&["config", "core.repositoryFormatVersion", "1"]);
    repo.git(&["config", "extensions.unheardOf", "true"]);
    check(
        &repo,
        "repository",
        ("problem", "needs the extension `unheardof`"),
    );
}

#[test]
fn a_damaged_head_stops_nothing_else() {
    let repo = healthy();
    well(&repo, "head");
    if repo.path().join(".git/reftable").exists() {
        return;
    }
    repo.write(".git/HEAD", "garbage\n");
    check(&repo, "head", ("problem", "HEAD"));
    let fixed = remedy(&repo, "head").replace("<branch>", "main");
    copied(&repo, &fixed);
    well(&repo, "head");
}

#[test]
fn a_git_that_is_too_old_is_found() {
    let repo = healthy();
    well(&repo, "git");
    let programs = repo.beside("programs");
    std::fs::create_dir(&programs).unwrap();
    let git = programs.join("git");
    std::fs::write(&git, "#!/bin/sh\necho git version 2.20.1\n").unwrap();
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/bin:/usr/bin", programs.display());
    one(
        &findings_named(&with(&repo, "PATH", &path), "git"),
        ("problem", "git 2.20.1 is too old"),
    );

    // A git that hangs does not block `doctor`.
    std::fs::write(&git, "#!/bin/sh\nsleep 60\n").unwrap();
    one(
        &findings_named(&with(&repo, "PATH", &path), "git"),
        ("problem", "does not say its version"),
    );
}

#[test]
fn a_missing_sandbox_is_reported_with_the_reason() {
    let repo = healthy();
    let none = "landlock=return(0)";
    let out = with(&repo, "FAILPOINTS", none);
    one(
        &findings_named(&out, "sandbox"),
        ("warning", "without Landlock"),
    );
    repo.git(&["config", "teddy.execute.sandbox", "require"]);
    let out = with(&repo, "FAILPOINTS", none);
    one(
        &findings_named(&out, "sandbox"),
        ("problem", "no command runs"),
    );
    repo.git(&["config", "teddy.execute.sandbox", "off"]);
    check(&repo, "sandbox", ("note", "can do what you can"));
}

#[test]
fn little_room_is_found() {
    let repo = healthy();
    let out = with(&repo, "FAILPOINTS", "disk-space=return(1000000)");
    let rooms = findings_named(&out, "room");
    assert!(
        rooms[0].starts_with("problem: only 976.6 KiB free for the repository"),
        "{rooms:?}"
    );
    let out = with(&repo, "FAILPOINTS", "disk-space=return(99000000000)");
    assert_eq!(findings_named(&out, "room"), [""; 0]);
}

#[test]
fn what_takes_much_room_is_found() {
    let repo = healthy();
    well(&repo, "caches");
    let big = repo.path().join(".git/teddy/undo/big");
    std::fs::create_dir_all(big.parent().unwrap()).unwrap();
    std::fs::File::create(big)
        .unwrap()
        .set_len(6 << 30)
        .unwrap();
    check(&repo, "caches", ("note", "6.0 GiB"));
}

#[test]
fn a_broken_configuration_is_a_finding_and_stops_nothing() {
    let repo = healthy();
    well(&repo, "configuration");
    repo.configure("agent: [\n");
    check(&repo, "configuration", ("problem", "teddy.yaml"));
    let out = repo.teddy(&["doctor", "--json"]);
    assert!(out.stdout.contains("the newest turns sound"), "{out}");
    repo.configure("agnet: x\n");
    check(
        &repo,
        "configuration",
        ("problem", "unknown setting `agnet`"),
    );
    let outside = repo.teddy_in(&repo.beside("home"), &["doctor", "--json"]);
    one(
        &findings_named(&outside, "configuration"),
        ("problem", "agnet"),
    );

    repo.configure("");
    repo.write(".teddy/config.yaml", "agent: [\n");
    check(&repo, "configuration", ("problem", ".teddy/config.yaml"));
    // An error in the command line is not a finding.
    repo.remove(".teddy/config.yaml");
    let out = repo.teddy(&["doctor", "-c", "replan.max=many", "--json"]);
    assert_eq!(value(&out)["error"]["kind"], "Usage", "{out}");
}

#[test]
fn untrusted_settings_of_a_repository_are_found() {
    let repo = healthy();
    well(&repo, "trust");
    repo.write(".teddy/config.yaml", "worktree: {setup: \"true\"}\n");
    check(&repo, "trust", ("warning", "`worktree.setup`"));
    repo.done(&["trust", "-y"]);
    well(&repo, "trust");

    repo.write(".teddy/config.yaml", "model: x\nlimits: {turns: 100}\n");
    check(&repo, "trust", ("warning", "are ignored: `limits.turns`"));
    check(&repo, "ignored", ("note", "trusted or not: `model`"));
    repo.done(&["trust", "-y"]);
    well(&repo, "trust");
    check(&repo, "ignored", ("note", "`model`"));
}

#[test]
fn a_key_in_the_open_is_found_and_never_shown() {
    let repo = healthy();
    well(&repo, "keys");
    let key = format!("sk-ant-{}", "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf");
    let config =
        format!("models:\n  m:\n    kind: openai\n    id: x\n    headers: {{x-api-key: {key}}}\n");
    repo.configure(&config);
    let file = repo.beside("teddy.yaml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    check(&repo, "keys", ("warning", "line 5"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    check(&repo, "keys", ("problem", "others can read it (mode 644)"));
    let out = repo.teddy(&["doctor", "--json", "--fix"]);
    one(&findings_named(&out, "keys"), ("warning", "line 5"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!format!("{out}").contains("a9Zk3"), "{out}");

    repo.configure("");
    repo.write(".teddy/config.yaml", format!("# {key}\n"));
    check(&repo, "keys", ("problem", "line 1 of `.teddy/config.yaml`"));
    repo.remove(".teddy/config.yaml");
    repo.git(&[
        "config",
        "teddy.models.m.headers.Authorization",
        "Bearer hunter2hunter2",
    ]);
    repo.git(&["config", "teddy.models.m.kind", "openai"]);
    check(&repo, "keys", ("warning", "teddy.models.m.headers"));
    copied(&repo, &remedy(&repo, "keys"));
    well(&repo, "keys");
}

#[test]
fn a_configuration_that_others_can_write_is_closed() {
    let repo = healthy();
    let file = repo.beside("teddy.yaml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    check(&repo, "keys", ("problem", "others can write"));
    copied(&repo, &remedy(&repo, "keys"));
    well(&repo, "keys");
}

#[test]
fn a_model_that_is_not_set_up_is_reported() {
    let repo = healthy();
    well(&repo, "model");
    let configured = |yaml: &str, expected: (&str, &str)| {
        repo.configure(yaml);
        check(&repo, "model", expected);
    };
    configured("", ("note", "no model is configured"));
    configured("model: nobody\n", ("problem", "nobody"));
    configured(
        "model: openai:x\n",
        ("problem", "OPENAI_API_KEY is not set"),
    );
    configured(
        "model: command:no-such-program-here -p\n",
        ("problem", "the program `no-such-program-here`"),
    );
    configured(
        "model: acp:no-such-agent-here\n",
        ("problem", "no-such-agent-here"),
    );
    configured(
        "model: replay:nowhere\n",
        ("problem", "`nowhere`, which does not exist"),
    );
    for fine in ["command:sh", "manual", "replay:demo"] {
        repo.configure(&format!("model: {fine}\n"));
        well(&repo, "model");
    }
    repo.configure("model: manual\nmodels: {m: {kind: anthropic, id: x}}\n");
    well(&repo, "model");
    check(&repo, "models", ("note", "ANTHROPIC_API_KEY is not set"));
}

#[test]
fn the_models_server_is_asked_whether_it_is_there_and_nothing_else() {
    let repo = healthy();
    let fake = Fake::answering(&[response("404 Not Found", "", "")]);
    let config = |origin: &str| {
        format!(
            "model: m\nmodels: {{m: {{kind: openai, id: x, base_url: '{origin}/v1', api_key_env: MY_KEY, headers: {{x-team: blue}}}}}}\n"
        )
    };
    repo.configure(&config(&fake.origin));
    let asked = |discovery: &str| {
        let mut command = repo.teddy_command(&["doctor", "--json"]);
        let command = command.env("TEDDY_DISCOVERY", discovery);
        Output::of(
            command
                .env("MY_KEY", "hunter2hunter2")
                .current_dir(repo.path()),
        )
    };
    assert_eq!(findings_named(&asked("off"), "model"), [""; 0]);
    assert_eq!(fake.requests().len(), 0);

    let out = asked("on");
    assert!(out.stdout.contains("which answers"), "{out}");
    let requests = fake.requests();
    assert_eq!(requests.len(), 1);
    assert!(
        requests[0].starts_with("HEAD / HTTP/1.1\r\n"),
        "{}",
        requests[0]
    );
    for sent in ["hunter2", "uthorization", "x-team"] {
        assert!(!requests[0].contains(sent), "{}", requests[0]);
    }

    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    repo.configure(&config(&format!("http://{}", silent.local_addr().unwrap())));
    let start = std::time::Instant::now();
    one(
        &findings_named(&asked("on"), "model"),
        ("warning", "no answer within 2 s"),
    );
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn a_push_of_everything_is_found_and_the_remedy_keeps_sessions_here() {
    let repo = healthy();
    well(&repo, "push");
    repo.git(&["init", "-q", "--bare", "../backup.git"]);
    repo.git(&["remote", "add", "backup", "../backup.git"]);
    repo.git(&["config", "remote.backup.push", "refs/*:refs/*"]);
    check(&repo, "push", ("warning", "`refs/*:refs/*`"));
    copied(&repo, &remedy(&repo, "push"));
    well(&repo, "push");
    repo.git(&["push", "-q", "backup"]);
    let sent = repo.git_in(
        &repo.beside("backup.git"),
        &["for-each-ref", "--format=%(refname)"],
    );
    assert_eq!(sent, "refs/heads/main");

    repo.git(&["remote", "add", "--mirror=push", "mirror", "../backup.git"]);
    check(&repo, "push", ("warning", "`remote.mirror.mirror` is set"));
    copied(&repo, &remedy(&repo, "push"));
    well(&repo, "push");
    repo.git(&["config", "alias.save", "!git push --mirror backup"]);
    check(&repo, "push", ("warning", "the alias `git save`"));
    repo.git(&["config", "--unset", "alias.save"]);
    repo.write(
        ".git/hooks/post-commit",
        "#!/bin/sh\ngit push -q backup '+refs/*:refs/*'\n",
    );
    check(&repo, "push", ("warning", "post-commit"));
}

#[test]
fn a_fetch_that_overwrites_sessions_is_found_and_the_remedy_keeps_them() {
    let repo = healthy();
    well(&repo, "fetch");
    repo.git(&["init", "-q", "--bare", "-b", "main", "../other.git"]);
    repo.git(&["push", "-q", "../other.git", "main"]);
    repo.git(&["remote", "add", "--mirror=fetch", "other", "../other.git"]);
    check(&repo, "fetch", ("warning", "overwrites the sessions here"));
    copied(&repo, &remedy(&repo, "fetch"));
    well(&repo, "fetch");
    repo.git(&["fetch", "-q", "--prune", "--update-head-ok", "other"]);
    assert!(repo.done(&["sessions"]).contains("demo"));
}

#[test]
fn names_that_a_repository_made_up_move_no_cursor_and_run_nothing() {
    let repo = healthy();
    repo.git(&["config", "remote.a\u{1b}[2J;touch x.push", "refs/*:refs/*"]);
    let out = repo.teddy(&["doctor"]);
    assert!(!out.stdout.contains('\u{1b}'), "{out}");
    assert!(remedy(&repo, "push").contains(r"$'remote.a\x1b[2J;touch\x20x.push'"));
}

#[test]
fn a_pipe_instead_of_a_file_does_not_block() {
    let repo = healthy();
    for place in [
        "hooks/pre-push",
        "teddy/pending.json",
        "teddy/hooks",
        "teddy/lock",
    ] {
        let path = repo.path().join(".git").join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        copied(&repo, &format!("mkfifo '{}'", path.display()));
    }
    let out = repo.teddy(&["doctor", "--json"]);
    assert!(out.code >= 0, "{out}");
    assert!(value(&out)["checks"].is_array(), "{out}");
}

#[test]
fn a_lost_worktree_is_forgotten_and_one_without_a_session_reported() {
    let repo = healthy();
    repo.run_plan(&plan("Run", &[execute("echo x > x.txt")]));
    well(&repo, "worktrees");
    let listed = repo.json(&["gc", "-n"], 0);
    let place = listed["usage"]["worktrees"][0]["path"]
        .as_str()
        .unwrap()
        .to_owned();
    let aside = repo.beside("aside");
    std::fs::rename(&place, &aside).unwrap();
    check(
        &repo,
        "worktrees",
        ("note", "the worktree of `demo` is gone"),
    );
    std::fs::rename(&aside, &place).unwrap();
    well(&repo, "worktrees");

    repo.git(&["update-ref", "refs/heads/keep", "refs/teddy/sessions/demo"]);
    repo.git(&["update-ref", "-d", "refs/teddy/sessions/demo"]);
    check(
        &repo,
        "worktrees",
        ("note", "of the session `demo`, which is gone"),
    );
    repo.git(&["update-ref", "refs/teddy/sessions/demo", "refs/heads/keep"]);

    std::fs::remove_dir_all(&place).unwrap();
    let out = repo.teddy(&["doctor", "--fix"]);
    out.check(0, &["fixed", "forgot the worktree of `demo`"]);
    well(&repo, "worktrees");
    repo.run_plan(&plan("Run again", &[execute("echo y > y.txt")]));
    assert_eq!(repo.read("y.txt"), "y\n");
}

#[test]
fn worktrees_without_their_repository_are_reported() {
    let repo = healthy();
    repo.run_plan(&plan("Run", &[execute("echo x > x.txt")]));
    well(&repo, "stray");
    let aside = repo.beside("worktrees");
    std::fs::rename(repo.path().join(".git/teddy/worktrees"), &aside).unwrap();
    check(&repo, "stray", ("note", "was a session's worktree"));
    std::fs::rename(&aside, repo.path().join(".git/teddy/worktrees")).unwrap();
    well(&repo, "stray");

    std::fs::rename(repo.path(), repo.beside("moved")).unwrap();
    let out = repo.teddy_in(&repo.beside("home"), &["doctor", "--json"]);
    one(&findings_named(&out, "stray"), ("note", "which is gone"));
}

#[test]
fn stale_locks_are_reported() {
    let repo = healthy();
    well(&repo, "locks");
    repo.write(".git/teddy/lock", "process 4000000 (execute)");
    check(&repo, "locks", ("note", "process 4000000 (execute) ended"));
    repo.done(&["doctor", "--fix"]);
    well(&repo, "locks");

    for name in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
        let lock = format!(".git/{name}");
        repo.write(&lock, "");
        well(&repo, "git-locks");
        age(&repo.path().join(&lock));
        check(
            &repo,
            "git-locks",
            ("problem", "days old: a git that was killed"),
        );
        copied(&repo, &remedy(&repo, "git-locks"));
        well(&repo, "git-locks");
    }
}

#[test]
fn an_interrupted_turn_is_reported_and_completed_by_fix() {
    let repo = healthy();
    let text = plan("Make d", &[create("d.txt", "d\n")]);
    repo.write("plan.md", text);
    let mut command = repo.teddy_command(&["execute", "plan.md", "-y"]);
    let command = command.env("FAILPOINTS", "after-ref=return(kill)");
    Output::of(command.current_dir(repo.path()));
    check(&repo, "pending", ("warning", "a crash interrupted a turn"));
    repo.done(&["doctor", "--fix"]);
    well(&repo, "pending");
    assert_eq!(repo.read("d.txt"), "d\n");
}

#[test]
fn displaced_saves_are_reported() {
    let repo = healthy();
    well(&repo, "saves");
    repo.write(".git/teddy/undo/rescued/a.txt", "mine\n");
    check(&repo, "saves", ("note", "1 save of yours"));
}

#[test]
fn hooks_of_agents_without_a_program_are_reported() {
    let repo = healthy();
    well(&repo, "hooks");
    repo.done(&["hooks", "install", "claude", "--user", "-y"]);
    let file = repo.beside("home/.claude/settings.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let here = env!("CARGO_BIN_EXE_teddy");
    std::fs::write(
        &file,
        text.replace("\"teddy hook", &format!("\"{here} hook")),
    )
    .unwrap();
    well(&repo, "hooks");
    std::fs::write(&file, text.replace("\"teddy hook", "\"/gone/teddy hook")).unwrap();
    check(
        &repo,
        "hooks",
        ("warning", "calls `/gone/teddy`, which does not exist"),
    );

    let half = text.replacen("teddy hook claude", "true", 1);
    std::fs::write(&file, half).unwrap();
    check(&repo, "hooks", ("warning", "a part of our hooks only"));
    std::fs::write(&file, "{").unwrap();
    check(&repo, "hooks", ("note", "settings.json"));
}

#[test]
fn unrecorded_prompts_are_reported() {
    let repo = healthy();
    well(&repo, "prompts");
    repo.write(
        ".git/teddy/hooks/troubles.log",
        "2026-01-02T03:04:05Z no room\n",
    );
    check(&repo, "prompts", ("warning", "no room"));
}

#[test]
fn unknown_and_empty_refs_are_reported() {
    let repo = healthy();
    well(&repo, "stray-refs");
    let tip = repo.git(&["rev-parse", "refs/teddy/sessions/demo"]);
    for name in ["sessions/No.Name", "drafts/gone", "other/thing"] {
        repo.git(&["update-ref", &format!("refs/teddy/{name}"), &tip]);
        check(&repo, "stray-refs", ("note", name));
        copied(&repo, &remedy(&repo, "stray-refs"));
        well(&repo, "stray-refs");
    }
    if repo.path().join(".git/reftable").exists() {
        return;
    }
    well(&repo, "refs");
    repo.write(".git/refs/teddy/sessions/demo", "");
    check(&repo, "refs", ("problem", "refs/teddy/sessions/demo"));
    copied(
        &repo,
        "cp -r .git ../bare.git && git --git-dir ../bare.git config core.bare true",
    );
    let bare = repo.teddy_in(&repo.beside("bare.git"), &["doctor", "--json"]);
    one(
        &findings_named(&bare, "refs"),
        ("problem", "refs/teddy/sessions/demo"),
    );
    repo.done(&["doctor", "--fix"]);
    well(&repo, "refs");
}

#[test]
fn a_forged_session_is_reported() {
    let repo = healthy();
    well(&repo, "turns");
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["update-ref", "refs/teddy/sessions/forged", &head]);
    check(&repo, "turns", ("problem", "is not a turn of a session"));
    assert_eq!(remedy(&repo, "turns"), "teddy verify forged");
}

#[test]
fn each_fix_is_reported_and_all_fixable_problems_are_fixed() {
    let repo = project();
    repo.run_plan(&plan("Run", &[execute("echo x > x.txt")]));
    let place = repo.json(&["gc", "-n"], 0)["usage"]["worktrees"][0]["path"].clone();
    std::fs::remove_dir_all(place.as_str().unwrap()).unwrap();
    repo.configure("agent: assistant\n");
    let file = repo.beside("teddy.yaml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o622)).unwrap();
    let fixable = |report: &Value| {
        let checks = report["checks"].as_array().unwrap().iter();
        checks.filter(|check| check["fixable"] == true).count()
    };
    let before = value(&repo.teddy(&["doctor", "--json"]));
    assert_eq!(fixable(&before), 3, "{before:#}");
    let refs = repo.git(&["for-each-ref"]);

    let report = repo.json(&["doctor", "--fix"], 0);
    let fixed: Vec<&str> = report["fixed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fixed| fixed["name"].as_str().unwrap())
        .collect();
    assert_eq!(fixed, ["keys", "log", "worktrees"], "{report:#}");
    assert_eq!(fixable(&report), 0, "{report:#}");
    assert_eq!(repo.git(&["for-each-ref"]), refs);
    assert_eq!(
        repo.git(&["config", "log.excludeDecoration"]),
        "refs/teddy/"
    );
    let again = repo.json(&["doctor", "--fix"], 0);
    assert_eq!(again["fixed"].as_array().unwrap().len(), 0, "{again:#}");
}

#[test]
fn looking_changes_nothing() {
    let repo = healthy();
    let (users, refs) = (repo.users(), repo.git(&["for-each-ref"]));
    repo.done(&["doctor"]);
    assert_eq!((repo.users(), repo.git(&["for-each-ref"])), (users, refs));
}
