//! `hooks`, and the commands that the hooks run: each prompt of an agent becomes a turn, without
//! any output to the agent.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::plans::{create, plan};
use crate::support::landing::project;
use crate::support::{Output, TestRepo};
use std::time::Duration;
use teddy::host::lock::Lock;

/// Sends an event as the agent's hook does. The hook must print nothing.
#[track_caller]
fn tell(repo: &TestRepo, agent: &str, event: &Value) {
    let out = repo.teddy_reads(&["hook", agent], event.to_string());
    silent(&out);
}

/// Checks for success without any output.
#[track_caller]
fn silent(out: &Output) {
    assert_eq!((out.code, &*out.stdout, &*out.stderr), (0, "", ""), "{out}");
}

/// Notes in the report of a session's first turn.
fn notes(repo: &TestRepo, session: &str) -> String {
    let report = repo.done(&["-s", session, "show", "1", "report.md"]);
    let notes = report
        .lines()
        .filter_map(|line| line.strip_prefix("- **Note:** "));
    notes.collect::<Vec<_>>().join("\n")
}

/// Waits until all events are recorded.
fn settle(repo: &TestRepo) {
    silent(&repo.teddy(&["hook", "take-events"]));
}

/// Returns an event as Claude Code sends it.
fn claude(repo: &TestRepo, id: &str, event: &str, more: &Value) -> Value {
    let mut told = json!({
        "session_id": id,
        "cwd": repo.path(),
        "hook_event_name": event,
        "transcript_path": repo.beside(&format!("home/.claude/projects/p/{id}.jsonl")),
    });
    for (key, value) in more.as_object().unwrap() {
        told[key] = value.clone();
    }
    told
}

/// Sends a prompt event and waits until it is recorded.
fn prompt(repo: &TestRepo, id: &str, words: &str) {
    let told = claude(repo, id, "UserPromptSubmit", &json!({ "prompt": words }));
    tell(repo, "claude", &told);
    settle(repo);
}

/// Sends a stop event and waits until the turn is recorded.
fn stop(repo: &TestRepo, id: &str) {
    tell(repo, "claude", &claude(repo, id, "Stop", &json!({})));
    settle(repo);
}

/// Sends the event of a tool that writes a file.
fn touch(repo: &TestRepo, id: &str, path: &str) {
    let input =
        json!({ "tool_name": "Write", "tool_input": { "file_path": repo.path().join(path) } });
    tell(repo, "claude", &claude(repo, id, "PostToolUse", &input));
}

/// Appends a line of JSON to the transcript of a conversation.
fn log_line(repo: &TestRepo, id: &str, line: &Value) {
    let file = repo.beside(&format!("home/.claude/projects/p/{id}.jsonl"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let old = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(file, format!("{old}{line}\n")).unwrap();
}

/// Sets when a file was written, in seconds since 1970.
fn set_time(path: &Path, seconds: u64) {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

/// Appends to the transcript of a conversation.
fn say(repo: &TestRepo, id: &str, line: &str) {
    log_line(repo, id, &json!({ "said": line }));
}

/// Returns titles and files of the turns, newest first.
fn turns(repo: &TestRepo, session: &str) -> Vec<(String, Value)> {
    let log = repo.json(&["-s", session, "log"], 0);
    let rows = log.as_array().unwrap().iter();
    let rows = rows.filter(|row| row["status"] == "recorded");
    rows.map(|row| {
        let title = row["title"].as_str().unwrap().to_owned();
        (title, row["files"].clone())
    })
    .collect()
}

#[test]
fn each_prompt_is_a_turn_with_its_words_its_excerpt_and_its_difference() {
    let repo = project();
    repo.run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.write("mine.txt", "mine\n");
    say(&repo, "0af1-22", "before");
    prompt(&repo, "0af1-22", "add e");
    say(&repo, "0af1-22", "now");
    repo.write("e.txt", "e\n");
    stop(&repo, "0af1-22");
    repo.write("mine.txt", "mine again\n");
    prompt(&repo, "0af1-22", "explain it");
    stop(&repo, "0af1-22");
    assert_eq!(
        turns(&repo, "claude-0af122"),
        [
            ("explain it".to_owned(), json!([])),
            ("add e".to_owned(), json!(["e.txt"]))
        ]
    );

    let show = |name: &str| repo.done(&["-s", "claude-0af122", "show", "1", name]);
    assert_eq!(show("transcript.jsonl"), "{\"said\":\"now\"}\n");
    let meta = show("meta.yaml");
    let said = "recorded:\n  by: claude\n  conversation: 0af1-22\n";
    assert!(meta.contains(said), "{meta}");
    let status = repo.json(&["status"], 0);
    assert_eq!(status["session"], "demo");
    assert!(status["hook_troubles"].is_null(), "{status}");
    repo.done(&["verify"]);
    repo.done(&["-s", "claude-0af122", "undo"]);
    assert!(!repo.path().join("e.txt").exists());
    assert_eq!(repo.read("mine.txt"), "mine again\n");
}

#[test]
fn agents_at_once_are_kept_apart() {
    let repo = project();
    prompt(&repo, "aaaa", "make a");
    prompt(&repo, "bbbb", "make b");
    repo.write("by-a.txt", "a\n");
    stop(&repo, "aaaa");
    repo.write("by-b.txt", "b\n");
    stop(&repo, "bbbb");
    let made = |session: &str| turns(&repo, session);
    assert_eq!(
        made("claude-aaaa"),
        [("make a".to_owned(), json!(["by-a.txt"]))]
    );
    assert_eq!(
        made("claude-bbbb"),
        [("make b".to_owned(), json!(["by-b.txt"]))]
    );
    repo.done(&["-s", "claude-bbbb", "undo"]);
    assert_eq!(repo.read("by-a.txt"), "a\n");
    assert!(!repo.path().join("by-b.txt").exists());
    repo.done(&["verify"]);
}

#[test]
fn a_prompt_that_was_interrupted_is_a_turn_as_well() {
    let repo = project();
    prompt(&repo, "c1", "first");
    repo.write("one.txt", "1\n");
    prompt(&repo, "c1", "second");
    repo.write("two.txt", "2\n");
    stop(&repo, "c1");
    // The agent goes on by itself. Changes that its tools do not report are the user's.
    touch(&repo, "c1", "three.txt");
    repo.write("three.txt", "3\n");
    repo.write("mine.txt", "mine\n");
    stop(&repo, "c1");
    stop(&repo, "c1");
    let report = repo.done(&["-s", "claude-c1", "show", "1", "report.md"]);
    insta::assert_snapshot!(repo.plain(&report), @"
    # Execution Report: first
    - **Overall Status:** Recorded 🟢
    - **Done by:** claude
    - **Note:** interrupted at an unknown time: changes that you made before your next prompt can be in this turn

    ## Changed Files

    - write one.txt
    ");
    assert_eq!(
        turns(&repo, "claude-c1"),
        [
            ("Record claude: three.txt".to_owned(), json!(["three.txt"])),
            ("second".to_owned(), json!(["two.txt"])),
            ("first".to_owned(), json!(["one.txt"]))
        ]
    );
}

#[test]
fn events_are_recorded_in_the_order_in_which_they_were_told() {
    let repo = project();
    for number in 0..4 {
        let words = json!({ "prompt": format!("prompt {number}") });
        tell(
            &repo,
            "claude",
            &claude(&repo, "q", "UserPromptSubmit", &words),
        );
        tell(&repo, "claude", &claude(&repo, "q", "Stop", &json!({})));
    }
    settle(&repo);
    let titles: Vec<String> = turns(&repo, "claude-q")
        .into_iter()
        .map(|row| row.0)
        .collect();
    assert_eq!(titles, ["prompt 3", "prompt 2", "prompt 1", "prompt 0"]);
}

/// Regression: the user's edits after an interruption became the agent's.
#[test]
fn edits_after_an_interruption_are_the_users() {
    let repo = project();
    prompt(&repo, "esc", "first");
    let line = |time: &str, text: &str| {
        let message = json!({ "content": [{ "type": "text", "text": text }] });
        log_line(
            &repo,
            "esc",
            &json!({ "timestamp": time, "message": message }),
        );
    };
    repo.write("agent.txt", "agent\n");
    set_time(&repo.path().join("agent.txt"), 1_600_000_000);
    line("2020-09-13T12:26:50Z", "[Request interrupted by user]");
    repo.write("mine.txt", "mine\n");
    line("2030-01-01T00:00:00Z", "second");
    prompt(&repo, "esc", "second");
    repo.write("more.txt", "more\n");
    stop(&repo, "esc");
    assert_eq!(
        turns(&repo, "claude-esc"),
        [
            ("second".to_owned(), json!(["more.txt"])),
            ("first".to_owned(), json!(["agent.txt"]))
        ]
    );
    let report = repo.done(&["-s", "claude-esc", "show", "1", "report.md"]);
    let note = "- **Note:** interrupted at 2020-09-13T12:26:50";
    assert!(report.contains(note), "{report}");
    repo.done(&["-s", "claude-esc", "undo", "2"]);
    assert_eq!(repo.read("mine.txt"), "mine\n");
    assert!(!repo.path().join("agent.txt").exists());
    repo.done(&["verify"]);
}

/// Regression: Gemini's transcript is one document, of which no line has a time, and Codex writes
/// lines about the next prompt before it.
#[test]
fn edits_after_an_interruption_of_codex_or_gemini_are_the_users() {
    for (agent, transcript) in [
        ("codex", "home/.codex/sessions/2020/s.jsonl"),
        ("gemini", "home/.gemini/tmp/p/chats/s.json"),
    ] {
        let repo = project();
        let file = repo.beside(transcript);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let entry = |time: &str, kind: &str, content: &str| match agent {
            "codex" => json!({ "timestamp": time, "type": "event_msg",
                               "payload": { "type": kind, "message": content } }),
            _ => json!({ "timestamp": time, "type": kind, "content": content }),
        };
        let write = |entries: &[Value]| {
            let lines: Vec<String> = entries.iter().map(|it| format!("{it}\n")).collect();
            let text = match agent {
                "codex" => lines.concat(),
                _ => format!("{:#}", json!({ "sessionId": "s", "messages": entries })),
            };
            std::fs::write(&file, text).unwrap();
        };
        let send = |name: &str, words: &str| {
            let event = json!({ "session_id": "esc", "cwd": repo.path(), "prompt": words,
                                "hook_event_name": name, "transcript_path": file });
            tell(&repo, agent, &event);
            settle(&repo);
        };
        let [begin, end] = match agent {
            "codex" => ["UserPromptSubmit", "Stop"],
            _ => ["BeforeAgent", "AfterAgent"],
        };
        write(&[]);
        send(begin, "first");
        repo.write("agent.txt", "agent\n");
        set_time(&repo.path().join("agent.txt"), 1_600_000_000);
        repo.write("mine.txt", "mine\n");
        let [aborted, starts] = match agent {
            "codex" => ["turn_aborted", "task_started"],
            _ => ["info", "info"],
        };
        write(&[
            entry("2020-09-13T12:26:00Z", "user", "first"),
            entry("2020-09-13T12:26:50Z", aborted, "Request cancelled."),
            entry("2030-01-01T00:00:00Z", starts, ""),
            entry("2030-01-01T00:00:00Z", "user", "second"),
        ]);
        send(begin, "second");
        repo.write("more.txt", "more\n");
        send(end, "");
        let session = format!("{agent}-esc");
        assert_eq!(
            turns(&repo, &session),
            [
                ("second".to_owned(), json!(["more.txt"])),
                ("first".to_owned(), json!(["agent.txt"]))
            ]
        );
        assert!(notes(&repo, &session).starts_with("interrupted at 2020-09-13T12:26:50"));
    }
}

/// Regression: the turn had the files of another checkout than its prompt.
#[test]
fn a_turn_belongs_to_the_checkout_of_its_prompt() {
    let repo = project();
    let side = repo.beside("side");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        side.to_str().unwrap(),
    ]);
    std::fs::write(side.join("user.txt"), "the user's\n").unwrap();
    repo.write("mine.txt", "mine\n");
    prompt(&repo, "w", "do it");
    let new = repo.beside("new");
    repo.git(&["worktree", "add", "-q", "-b", "new", new.to_str().unwrap()]);
    std::fs::write(new.join("n.txt"), "n\n").unwrap();
    std::fs::write(side.join("s.txt"), "s\n").unwrap();
    repo.write("p.txt", "p\n");
    touch(&repo, "w", "../new/n.txt");
    let file = json!({ "tool_input": { "file_path": new.join("n.txt") } });
    tell(&repo, "claude", &claude(&repo, "w", "PostToolUse", &file));
    tell(
        &repo,
        "claude",
        &claude(&repo, "w", "Stop", &json!({ "cwd": side })),
    );
    settle(&repo);
    let rows = turns(&repo, "claude-w");
    let files: Vec<&Value> = rows.iter().map(|row| &row.1).collect();
    assert_eq!(
        files,
        [&json!(["s.txt"]), &json!(["n.txt"]), &json!(["p.txt"])]
    );
    let report = repo.done(&["-s", "claude-w", "show", "3", "report.md"]);
    insta::assert_snapshot!(repo.plain(&report), @"
    # Execution Report: do it
    - **Overall Status:** Recorded 🟢
    - **Done by:** claude
    - **Note:** done in `[dir]/side`; the prompt was given in `[dir]/repo`

    ## Changed Files

    - write s.txt
    ");
}

/// Bug: the files were in the turn of the other conversation, "and no agent named them".
#[test]
fn a_file_of_a_tool_is_found_however_its_path_is_written() {
    let repo = project();
    let (sub, link) = (repo.path().join("sub"), repo.beside("link"));
    std::fs::create_dir(&sub).unwrap();
    std::os::unix::fs::symlink(repo.path(), &link).unwrap();
    prompt(&repo, "one", "one");
    prompt(&repo, "two", "two");
    for path in ["./s.txt", "../d.txt", "../sub/../e.txt", "../../link/f.txt"] {
        let tool = json!({ "cwd": sub, "tool_input": { "file_path": path } });
        std::fs::write(sub.join(path), "1\n").unwrap();
        tell(&repo, "claude", &claude(&repo, "one", "PostToolUse", &tool));
    }
    let linked = json!({ "cwd": link, "tool_input": { "file_path": link.join("g.txt") } });
    repo.write("g.txt", "1\n");
    tell(
        &repo,
        "claude",
        &claude(&repo, "one", "PostToolUse", &linked),
    );
    repo.write("h.txt", "1\n");
    touch(&repo, "two", "h.txt");

    stop(&repo, "two");
    tell(
        &repo,
        "claude",
        &claude(&repo, "one", "Stop", &json!({ "cwd": link })),
    );
    settle(&repo);
    assert_eq!(
        turns(&repo, "claude-two"),
        [("two".to_owned(), json!(["h.txt"]))]
    );
    let files = json!(["d.txt", "e.txt", "f.txt", "g.txt", "sub/s.txt"]);
    assert_eq!(turns(&repo, "claude-one"), [("one".to_owned(), files)]);
    assert_eq!(notes(&repo, "claude-one"), "");
}

/// Bug: the end was dropped, and the next prompt's turn had what the user did after it.
#[test]
fn a_prompt_ends_if_the_agent_removed_the_directory_in_which_it_was_given() {
    let repo = project();
    let sub = repo.path().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let begin = json!({ "cwd": sub, "prompt": "clean up" });
    tell(
        &repo,
        "claude",
        &claude(&repo, "gone", "UserPromptSubmit", &begin),
    );
    settle(&repo);
    std::fs::remove_dir(&sub).unwrap();
    repo.write("d.txt", "1\n");
    tell(
        &repo,
        "claude",
        &claude(&repo, "gone", "Stop", &json!({ "cwd": sub })),
    );
    settle(&repo);
    let expected = ("clean up".to_owned(), json!(["d.txt"]));
    assert_eq!(turns(&repo, "claude-gone"), [expected]);
    assert_eq!(notes(&repo, "claude-gone"), "");
}

/// Bug: the prompt was in no turn, and the next ones went to a new session of the old name.
#[test]
fn a_conversation_of_hooks_follows_its_session() {
    let repo = project();
    prompt(&repo, "conv", "one");
    repo.write("d.txt", "1\n");
    repo.done(&["branch", "-m", "claude-conv", "login"]);
    stop(&repo, "conv");
    prompt(&repo, "conv", "two");
    repo.write("e.txt", "1\n");
    repo.done(&["branch", "-m", "login", "signup"]);
    stop(&repo, "conv");
    let turn = |title: &str, file: &str| (title.to_owned(), json!([file]));
    assert_eq!(
        turns(&repo, "signup"),
        [turn("two", "e.txt"), turn("one", "d.txt")]
    );

    prompt(&repo, "conv", "three");
    repo.done(&["gc", "-y", "signup"]);
    stop(&repo, "conv");
    let troubles = repo.json(&["hooks", "status"], 0)["troubles"].to_string();
    let expected = "session `signup` is gone, so no turn has what claude did in it";
    assert!(troubles.contains(expected), "{troubles}");
}

/// Bug: all that the agent had done before was in no turn.
#[test]
fn turns_of_another_session_take_nothing_out_of_an_agents_turn() {
    let repo = project();
    repo.workflow().new_session("user").done();
    let user = || repo.workflow().session("user");
    let run = |file: &str| {
        std::fs::write(repo.beside("plan.md"), plan(file, &[create(file, "1\n")])).unwrap();
        repo.done(&["-s", "user", "execute", "-y", "../plan.md"]);
    };
    let work = |at: u32| repo.write(&format!("agent{at}.txt"), "1\n");
    run("user1.txt");
    // What was published last is no turn that is in the files.
    user().undo(1).done();

    prompt(&repo, "one", "one");
    work(1);
    run("user2.txt");
    work(2);
    user().undo(1).done();
    work(3);
    user().redo(1).done();
    work(4);
    repo.done(&["-s", "user", "restore", "1", "-y"]);
    stop(&repo, "one");
    let files = json!(["agent1.txt", "agent2.txt", "agent3.txt", "agent4.txt"]);
    assert_eq!(turns(&repo, "claude-one"), [("one".to_owned(), files)]);
}

/// Bug: the prompt and its files were dropped.
#[test]
fn a_prompt_that_ends_while_its_session_is_busy_is_recorded_later() {
    let repo = project();
    prompt(&repo, "busy", "one");
    repo.write("d.txt", "1\n");
    let dir = repo.path().join(".git/teddy/locks/claude-busy");
    let held = Lock::take(&dir, "execute", Duration::ZERO).unwrap();
    let end = claude(&repo, "busy", "Stop", &json!({}));
    let send = |args: &[&str], input: String| {
        let mut command = repo.teddy_command(args);
        command.env("TEDDY_LOCK_TIMEOUT", "0");
        silent(&repo.reads(command, input));
    };
    send(&["hook", "claude"], end.to_string());
    send(&["hook", "take-events"], String::new());
    drop(held);
    settle(&repo);
    assert_eq!(
        turns(&repo, "claude-busy"),
        [("one".to_owned(), json!(["d.txt"]))]
    );
}

#[test]
fn an_end_in_another_repository_or_outside_closes_the_prompt_where_it_was_given() {
    let repo = project();
    let other = TestRepo::new().file("other.txt", "1\n");
    other.commit("init");
    let outside = repo.beside("outside");
    std::fs::create_dir_all(&outside).unwrap();
    for (id, dir) in [("q1", other.path().to_owned()), ("q2", outside)] {
        prompt(&repo, id, "do it");
        repo.write(&format!("{id}.txt"), "1\n");
        let end = claude(&repo, id, "Stop", &json!({ "cwd": dir }));
        silent(&repo.teddy_reads(&["hook", "claude"], end.to_string()));
        settle(&repo);
        let session = format!("claude-{id}");
        let expected = ("do it".to_owned(), json!([format!("{id}.txt")]));
        assert_eq!(turns(&repo, &session), [expected]);
        let report = repo.done(&["-s", &session, "show", "1", "report.md"]);
        let note = format!("the agent ended in `{}`", dir.display());
        assert!(report.contains(&note), "{report}");
    }
    assert_eq!(other.json(&["sessions"], 0), json!([]));

    // A prompt in another repository ends an interrupted one, too.
    prompt(&repo, "q3", "left");
    repo.write("q3.txt", "1\n");
    let begin = json!({ "cwd": other.path(), "prompt": "elsewhere" });
    let begin = claude(&repo, "q3", "UserPromptSubmit", &begin);
    silent(&repo.teddy_reads(&["hook", "claude"], begin.to_string()));
    settle(&repo);
    assert_eq!(
        turns(&repo, "claude-q3"),
        [("left".to_owned(), json!(["q3.txt"]))]
    );
}

#[test]
fn agents_that_edit_different_files_have_turns_of_their_own() {
    let repo = project();
    prompt(&repo, "aaaa", "make a");
    prompt(&repo, "bbbb", "make b");
    for (id, path) in [
        ("aaaa", "by-a.txt"),
        ("bbbb", "by-b.txt"),
        ("aaaa", "both.txt"),
        ("bbbb", "both.txt"),
    ] {
        repo.write(path, "x\n");
        touch(&repo, id, path);
    }
    stop(&repo, "bbbb");
    stop(&repo, "aaaa");
    assert_eq!(
        turns(&repo, "claude-bbbb"),
        [("make b".to_owned(), json!(["both.txt", "by-b.txt"]))]
    );
    assert_eq!(
        turns(&repo, "claude-aaaa"),
        [("make a".to_owned(), json!(["by-a.txt"]))]
    );
    let note = |session: &str| format!("`both.txt` was changed by `{session}` as well");
    assert_eq!(notes(&repo, "claude-bbbb"), note("claude-aaaa"));
    // Regression: only the turn that ended first had a note.
    assert_eq!(notes(&repo, "claude-aaaa"), note("claude-bbbb"));
    repo.done(&["-s", "claude-aaaa", "undo"]);
    assert_eq!(repo.read("by-b.txt"), "x\n");
    assert!(!repo.path().join("by-a.txt").exists());
    repo.done(&["verify"]);
}

/// Regression: the turn that ended first took such a file without a word.
#[test]
fn a_file_that_no_agent_named_is_said_to_be_uncertain_in_both_turns() {
    let repo = project();
    prompt(&repo, "aaaa", "make a");
    prompt(&repo, "bbbb", "make b");
    for (id, path) in [("aaaa", "by-a.txt"), ("bbbb", "by-b.txt")] {
        repo.write(path, "x\n");
        touch(&repo, id, path);
    }
    repo.write("generated.txt", "x\n");
    repo.write("other.txt", "x\n");
    stop(&repo, "bbbb");
    stop(&repo, "aaaa");
    let files = ["by-b.txt", "generated.txt", "other.txt"];
    assert_eq!(
        turns(&repo, "claude-bbbb"),
        [("make b".to_owned(), json!(files))]
    );
    assert_eq!(
        turns(&repo, "claude-aaaa"),
        [("make a".to_owned(), json!(["by-a.txt"]))]
    );
    assert_eq!(
        notes(&repo, "claude-bbbb"),
        "`generated.txt`, `other.txt` changed meanwhile, and no agent named them: this turn has them"
    );
    assert_eq!(
        notes(&repo, "claude-aaaa"),
        "`generated.txt`, `other.txt` changed meanwhile, and no agent named them: the turn of \
         `claude-bbbb` has them"
    );

    // One agent alone is not in doubt.
    prompt(&repo, "cccc", "make c");
    repo.write("c.txt", "x\n");
    stop(&repo, "cccc");
    assert_eq!(notes(&repo, "claude-cccc"), "");
    repo.done(&["verify"]);
}

#[test]
fn codex_and_gemini_tell_as_claude_does() {
    let repo = project();
    for (agent, id, [begin, end]) in [
        ("codex", "t", ["UserPromptSubmit", "Stop"]),
        ("gemini", "g", ["BeforeAgent", "AfterAgent"]),
    ] {
        repo.write("mine.txt", agent);
        let event = |name: &str| {
            json!({ "session_id": id, "cwd": repo.path(), "hook_event_name": name,
                    "prompt": "make f", "prompt_response": "done", "last_assistant_message": "done" })
        };
        tell(&repo, agent, &event(begin));
        settle(&repo);
        repo.write(&format!("{agent}.txt"), "f\n");
        tell(&repo, agent, &event(end));
        settle(&repo);
        let session = format!("{agent}-{id}");
        let expected = ("make f".to_owned(), json!([format!("{agent}.txt")]));
        assert_eq!(turns(&repo, &session), [expected]);
        let reply = repo.done(&["-s", &session, "show", "1", "transcript.md"]);
        assert_eq!(reply, "done\n");
    }

    // `notify` is called as well, and means nothing then.
    let notified = json!({ "type": "agent-turn-complete", "thread-id": "t", "cwd": repo.path() });
    silent(&repo.teddy(&["hook", "codex", &notified.to_string()]));
    settle(&repo);
    assert_eq!(turns(&repo, "codex-t").len(), 1);
}

/// Regression: the first turn had all that the user had changed since HEAD.
#[test]
fn notify_never_takes_what_was_there_before() {
    let notify = |repo: &TestRepo, words: &str| {
        let event = json!({
            "type": "agent-turn-complete", "thread-id": "t", "cwd": repo.path(),
            "input-messages": [words], "last-assistant-message": "made it",
        });
        silent(&repo.teddy(&["hook", "codex", &event.to_string()]));
        settle(repo);
    };
    let repo = project();
    repo.write("mine.txt", "mine\n");
    notify(&repo, "first");
    repo.write("e.txt", "e\n");
    notify(&repo, "second");
    assert_eq!(
        turns(&repo, "codex-t"),
        [
            ("second".to_owned(), json!(["e.txt"])),
            ("first".to_owned(), json!([]))
        ]
    );
    let report = repo.done(&["-s", "codex-t", "show", "1", "report.md"]);
    insta::assert_snapshot!(repo.plain(&report), @"
    # Execution Report: first
    - **Overall Status:** Recorded 🟢
    - **Done by:** codex
    - **Note:** the first prompt that Codex reported here: TeDDy did not know your files before it, so its changes are not in this turn

    ## Changed Files

    *(No file changed.)*
    ");
    let kept = repo.done(&["-s", "codex-t", "show", "2", "transcript.md"]);
    assert_eq!(kept, "made it\n");

    // An installation records the files, so that the first turn has its changes.
    let fresh = TestRepo::new().file("a.txt", "a\n");
    fresh.commit("init");
    fresh.write("mine.txt", "mine\n");
    fresh.done(&["hooks", "install", "codex", "--notify", "-y"]);
    fresh.write("e.txt", "e\n");
    notify(&fresh, "first");
    assert_eq!(
        turns(&fresh, "codex-t"),
        [("first".to_owned(), json!(["e.txt"]))]
    );
    fresh.done(&["-s", "codex-t", "undo"]);
    assert_eq!(fresh.read("mine.txt"), "mine\n");
    fresh.done(&["verify"]);
}

#[test]
fn the_program_that_notify_called_before_is_still_called() {
    let repo = project();
    let log = repo.beside("log");
    let program = repo.beside("say");
    let script = format!("#!/bin/sh\nprintf '%s|' \"$@\" > '{}'\n", log.display());
    std::fs::write(&program, script).unwrap();
    let mut permissions = program.metadata().unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&program, permissions).unwrap();
    let event = json!({ "type": "agent-turn-complete", "thread-id": "t", "cwd": repo.path() });
    let event = event.to_string();
    let program = program.to_str().unwrap();
    silent(&repo.teddy(&["hook", "codex", "--then", program, "done", &event]));
    assert_eq!(
        std::fs::read_to_string(log).unwrap(),
        format!("done|{event}|")
    );
    settle(&repo);
    assert_eq!(turns(&repo, "codex-t").len(), 1);
}

#[test]
fn a_transcript_elsewhere_or_behind_a_link_is_not_read() {
    let repo = project();
    let secret = repo.beside("home/secret");
    std::fs::write(&secret, "{\"key\":\"hunter2\"}\n").unwrap();
    let folder = repo.beside("home/.claude");
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&secret, folder.join("link.jsonl")).unwrap();
    for (number, path) in [
        secret.clone(),
        folder.join("link.jsonl"),
        folder.join("../secret"),
        folder.clone(),
        "secret".into(),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("h{number}");
        let more = json!({ "prompt": "x", "transcript_path": path });
        tell(
            &repo,
            "claude",
            &claude(&repo, &id, "UserPromptSubmit", &more),
        );
        tell(&repo, "claude", &claude(&repo, &id, "Stop", &more));
        settle(&repo);
        let session = format!("claude-{id}");
        assert_eq!(turns(&repo, &session).len(), 1);
        let files = repo.git(&[
            "ls-tree",
            "--name-only",
            &format!("teddy/sessions/{session}"),
        ]);
        assert!(!files.contains("transcript"), "{path:?}: {files}");
    }
}

/// Regression: an event could name the agent's login, `.env` or the git configuration.
#[test]
fn only_transcripts_of_the_agent_itself_are_read() {
    let repo = project();
    let home = repo.beside("home");
    let text = "{\"key\":\"hunter2\"}\n";
    let put = |path: &std::path::Path| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let login = home.join(".claude/.credentials.json");
    let projects = home.join(".claude/projects/p");
    let table = [
        ("claude", login.clone(), false),
        ("claude", home.join(".claude/settings.jsonl"), false),
        ("claude", home.join(".claude/history.jsonl"), false),
        ("claude", projects.join("../../history.jsonl"), false),
        ("claude", projects.join("notes.md"), false),
        ("claude", projects.join(".env.jsonl"), false),
        ("claude", home.join(".codex/sessions/a.jsonl"), false),
        ("claude", repo.path().join(".env"), false),
        ("claude", repo.path().join(".git/config.jsonl"), false),
        (
            "claude",
            repo.path().join(".claude/projects/a.jsonl"),
            false,
        ),
        ("claude", projects.join("link.jsonl"), false),
        ("claude", projects.join("linked/history.jsonl"), false),
        ("claude", projects.join("deep/er.jsonl"), true),
        ("gemini", home.join(".gemini/oauth_creds.json"), false),
        ("gemini", home.join(".gemini/tmp/p/shell_history"), false),
        ("gemini", home.join(".gemini/tmp/p/logs.json"), false),
        ("gemini", home.join(".gemini/tmp/p/chats/a.json"), true),
    ];
    for (_, path, _) in &table {
        if !path.ends_with("link.jsonl") && !path.ends_with("linked/history.jsonl") {
            put(path);
        }
    }
    std::os::unix::fs::symlink(&login, projects.join("link.jsonl")).unwrap();
    std::os::unix::fs::symlink("../..", projects.join("linked")).unwrap();

    for (number, (agent, path, is_read)) in table.iter().enumerate() {
        let id = format!("t{number}");
        let [begin, end] = match *agent {
            "gemini" => ["BeforeAgent", "AfterAgent"],
            _ => ["UserPromptSubmit", "Stop"],
        };
        // The transcript of Claude is appended to, so its first bytes belong to no prompt.
        let told = |event: &str, path: &std::path::Path| {
            json!({ "session_id": id, "cwd": repo.path(), "hook_event_name": event,
                    "prompt": "x", "transcript_path": path })
        };
        tell(&repo, agent, &told(begin, std::path::Path::new("/nowhere")));
        settle(&repo);
        tell(&repo, agent, &told(end, path));
        settle(&repo);
        let session = format!("teddy/sessions/{agent}-{id}");
        let files = repo.git(&["ls-tree", "--name-only", &session]);
        assert_eq!(files.contains("transcript"), *is_read, "{path:?}: {files}");
    }
}

#[test]
fn whatever_a_hook_is_told_the_agent_hears_nothing() {
    let repo = project();
    for words in [
        &["hook"][..],
        &["hook", "nobody"],
        &["hook", "claude", "--no-such-option"],
        &["hook", "codex", "{"],
    ] {
        silent(&repo.teddy(words));
    }
    silent(&repo.teddy_reads(&["hook", "claude"], "\u{1b}[2J{"));
    let outside = repo.beside("");
    silent(&repo.teddy_in(&outside, &["hook", "codex", "{}"]));
    let gone = json!({ "type": "agent-turn-complete", "thread-id": "t", "cwd": "/no/such" });
    silent(&repo.teddy(&["hook", "codex", &gone.to_string()]));

    let troubles = repo.json(&["hooks", "status"], 0)["troubles"].clone();
    assert_eq!(troubles.as_array().unwrap().len(), 4, "{troubles}");
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session demo, turn 0, on branch main
    Ready for turn 1
    No file changed since HEAD
    --- stderr
    warning: an agent's prompt may be in no turn: 2026-01-02T03:04:05Z the event of claude is not JSON: expected value at line 1 column 1 (the last of 4: `teddy hooks status`)
    Next: teddy '<what you want>'
    exit code 0
    ");
    prompt(&repo, "ok", "x");
    assert!(repo.json(&["status"], 0)["hook_troubles"].is_null());
}

#[test]
fn an_agent_that_works_for_teddy_is_not_recorded() {
    let repo = project();
    let told = json!({ "type": "agent-turn-complete", "thread-id": "t", "cwd": repo.path() });
    let mut command = repo.teddy_command(&["hook", "codex", &told.to_string()]);
    command.current_dir(repo.path()).env("TEDDY_RUN", "1");
    assert!(command.status().unwrap().success());
    settle(&repo);
    assert_eq!(repo.json(&["sessions"], 0).as_array().unwrap().len(), 1);
}

/// Installs and removes the hook of an agent. The file must be unchanged afterwards.
fn come_and_go(repo: &TestRepo, args: &[&str], file: &Path, text: Option<&str>) -> String {
    if let Some(text) = text {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let call = |verb: &str, more: &[&str]| repo.teddy(&[&["hooks", verb], args, more].concat());
    call("install", &[]).check(1, &["-y"]);
    call("install", &["-n"]).check(0, &["hook", "Nothing was written."]);
    assert_eq!(std::fs::read_to_string(file).ok().as_deref(), text);
    call("install", &["-y"]).check(0, &["Wrote `"]);
    let with = std::fs::read_to_string(file).unwrap();
    call("install", &["-y"]).check(0, &["needs no change."]);
    let rows = repo.json(&["hooks", "status", args[0]], 0)["hooks"].clone();
    let rows = rows.as_array().unwrap();
    let row = rows.iter().find(|row| row["state"] == "installed").unwrap();
    assert_eq!(row["file"], file.to_str().unwrap());
    let said = if text.is_some() {
        "Wrote `"
    } else {
        "Removed `"
    };
    call("remove", &["-y"]).check(0, &[said]);
    assert_eq!(std::fs::read_to_string(file).ok().as_deref(), text);
    with
}

#[test]
fn an_entry_is_shown_written_and_removed_again() {
    let repo = project();
    let shared = repo.path().join(".claude/settings.json");
    let with = come_and_go(&repo, &["claude"], &shared, None);
    assert!(with.contains("\"UserPromptSubmit\"") && with.contains("\"Stop\""));
    come_and_go(&repo, &["claude"], &shared, Some("{\"b\": 1, \"a\": []}"));
    let own = repo.beside("home/.gemini/settings.json");
    come_and_go(
        &repo,
        &["gemini", "--user"],
        &own,
        Some("{\n\t\"z\": {}\n}\n"),
    );
    let codex = repo.beside("home/.codex/hooks.json");
    come_and_go(&repo, &["codex"], &codex, None);
    come_and_go(
        &repo,
        &["codex"],
        &codex,
        Some("{\"hooks\": {\"Stop\": [{}]}}\n"),
    );
    let toml = repo.beside("home/.codex/config.toml");
    for text in [
        "notify = [\"say\"]\n",
        "# mine\n[a]\nb = 1\n",
        "a = 1\r\n# mine\r\n\r\n[b]\r\nc = 2",
        "a = 1",
        "",
    ] {
        come_and_go(&repo, &["codex", "--notify"], &toml, Some(text));
    }
    for text in [
        "{}",
        "",
        "{\n}\n",
        "{\"hooks\": {}}\r\n",
        "{\"hooks\": { \"Stop\": [ ] }}",
    ] {
        come_and_go(&repo, &["claude"], &shared, Some(text));
    }
}

#[test]
fn what_an_agent_saves_at_the_same_time_is_kept() {
    let repo = project();
    let file = repo.beside("home/.claude/settings.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "{\"count\": 0}\n").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let saved = std::thread::scope(|scope| {
        // Counts on, by rename and in place, and keeps everything else in the file.
        let agent = scope.spawn(|| {
            let mut count = 0;
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                let Ok(text) = std::fs::read_to_string(&file) else {
                    continue;
                };
                let Ok(mut value) = serde_json::from_str::<serde_json::Value>(&text) else {
                    continue;
                };
                assert_eq!(value["count"], count, "an edit was lost");
                count += 1;
                value["count"] = count.into();
                let text = format!("{value}\n");
                if count % 2 == 0 {
                    let new = file.with_extension("new");
                    std::fs::write(&new, text).unwrap();
                    std::fs::rename(&new, &file).unwrap();
                } else {
                    // Regression: the empty file counted as the settings.
                    let mut emptied = std::fs::File::create(&file).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(7));
                    emptied.write_all(text.as_bytes()).unwrap();
                }
                std::thread::sleep(std::time::Duration::from_millis(7));
            }
            count
        });
        for _ in 0..10 {
            repo.teddy(&["hooks", "install", "claude", "--user", "-y"]);
            repo.teddy(&["hooks", "remove", "claude", "--user", "-y"]);
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        agent.join().unwrap()
    });
    let value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(value["count"], saved);
}

#[test]
fn what_others_have_written_is_left_as_it_is() {
    let repo = project();
    let toml = repo.beside("home/.codex/config.toml");
    std::fs::create_dir_all(toml.parent().unwrap()).unwrap();
    std::fs::write(&toml, "notify = 1\n").unwrap();
    repo.teddy(&["hooks", "install", "codex", "--notify", "-y"])
        .check(
            1,
            &["`notify` is not a list of strings: 1", "add it yourself"],
        );
    let rows = repo.json(&["hooks", "status", "codex"], 0)["hooks"].clone();
    assert_eq!(rows[2]["state"], "foreign");

    let own = repo.beside("home/.claude/settings.json");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    std::fs::write(&own, "// mine\n{1}\n").unwrap();
    let install = ["hooks", "install", "claude", "--user", "-y"];
    repo.teddy(&install).check(
        1,
        &["is left as it is: it is not JSON", "teddy hook claude 2>"],
    );
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "// mine\n{1}\n");
}

#[test]
fn settings_behind_a_link_out_of_place_are_not_written() {
    let repo = project();
    let elsewhere = repo.beside("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("settings.json"), "{}\n").unwrap();
    std::os::unix::fs::symlink(&elsewhere, repo.path().join(".claude")).unwrap();
    repo.teddy(&["hooks", "install", "claude", "-y"])
        .check(1, &["is a link"]);
    std::os::unix::fs::symlink(&elsewhere, repo.beside("home/.claude")).unwrap();
    let install = ["hooks", "install", "claude", "--user", "-y"];
    repo.teddy(&install)
        .check(1, &["not below your home directory"]);
    let kept = std::fs::read_to_string(elsewhere.join("settings.json"));
    assert_eq!(kept.unwrap(), "{}\n");

    // A symlink to a directory below the home directory is followed and stays a symlink.
    std::fs::remove_file(repo.beside("home/.claude")).unwrap();
    let dotfiles = repo.beside("home/dotfiles");
    std::fs::create_dir_all(&dotfiles).unwrap();
    std::fs::write(dotfiles.join("settings.json"), "{}\n").unwrap();
    std::os::unix::fs::symlink(&dotfiles, repo.beside("home/.claude")).unwrap();
    repo.done(&install);
    assert!(repo.beside("home/.claude").is_symlink());
    let kept = std::fs::read_to_string(dotfiles.join("settings.json"));
    assert!(kept.unwrap().contains("teddy hook claude"));
}

/// Regression: a file behind a link got no lines to add, and a read-only file was replaced.
#[test]
fn settings_that_cannot_be_written_stay_and_the_lines_are_shown() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let repo = project();
    let shared = repo.path().join(".claude/settings.json");
    let refused = |args: &[&str], why: &str| {
        let all = [&["hooks", "install", "claude", "-y"], args].concat();
        let out = repo.teddy(&all);
        out.check(1, &[why, "add it yourself:", "teddy hook claude 2>"]);
    };
    repo.write(".claude/settings.json", "{}\n");
    let mode = |mode: u32| {
        std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o444);
    refused(&[], "is left as it is: it is read-only");
    assert_eq!(repo.read(".claude/settings.json"), "{}\n");
    mode(0o644);
    repo.done(&["hooks", "install", "claude", "-y"]);
    mode(0o444);
    // There is nothing to change.
    repo.done(&["hooks", "install", "claude", "-y"]);
    let remove = repo.teddy(&["hooks", "remove", "claude", "-y"]);
    insta::assert_snapshot!(remove.shown(&repo), @"
    --- stderr
    error: `[dir]/repo/.claude/settings.json` is left as it is: it is read-only
    exit code 1
    ");
    mode(0o644);
    repo.done(&["hooks", "remove", "claude", "-y"]);
    assert_eq!(repo.read(".claude/settings.json"), "{}\n");

    repo.remove(".claude/settings.json");
    repo.write("dotfiles.json", "{}\n");
    symlink("../dotfiles.json", &shared).unwrap();
    refused(&[], "is left as it is: cannot read `.claude/settings.json`");
    assert_eq!(repo.read("dotfiles.json"), "{}\n");
    repo.remove(".claude/settings.json");
    std::fs::create_dir(&shared).unwrap();
    refused(&[], "it is not a regular file");
    std::fs::remove_dir(&shared).unwrap();

    let elsewhere = repo.beside("elsewhere.json");
    std::fs::write(&elsewhere, "{}\n").unwrap();
    std::fs::create_dir_all(repo.beside("home/.claude")).unwrap();
    symlink(&elsewhere, repo.beside("home/.claude/settings.json")).unwrap();
    refused(&["--user"], "not below your home directory");
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "{}\n");
}

/// An undo goes back to before its turn, so it takes what other agents did on top of it as well.
/// It names those turns first and says how each is applied again.
#[test]
fn an_undo_below_the_turn_of_another_agent_names_it_and_a_pick_applies_it_again() {
    let repo = project();
    prompt(&repo, "aaaa", "make a");
    prompt(&repo, "bbbb", "make b");
    for (id, path) in [("aaaa", "by-a.txt"), ("bbbb", "by-b.txt")] {
        repo.write(path, "made\n");
        touch(&repo, id, path);
        stop(&repo, id);
    }
    let exist = || ["by-a.txt", "by-b.txt"].map(|path| repo.path().join(path).exists());
    let undo = ["-s", "claude-aaaa", "undo"];
    insta::assert_snapshot!(repo.printed(&[&undo[..], &["-n"]].concat()), @"
    delete by-a.txt
    delete by-b.txt
    --- stderr
    warning: this would also remove turn 1 of claude-bbbb from your files
    Your files would match turn 0: 2 files changed.
    exit code 0
    ");
    assert_eq!(exist(), [true, true]);
    insta::assert_snapshot!(repo.printed(&undo), @"
    delete by-a.txt
    delete by-b.txt
    --- stderr
    warning: your files no longer contain turn 1 of claude-bbbb; `teddy -s claude-aaaa pick claude-bbbb:1` applies only it, `teddy switch claude-bbbb` and `teddy restore @` restore all that was below as well
    Your files match turn 0: 2 files changed.
    exit code 0
    ");
    assert_eq!(exist(), [false, false]);
    repo.done(&["-s", "claude-aaaa", "pick", "claude-bbbb:1"]);
    assert_eq!(exist(), [false, true]);
    repo.done(&["verify"]);
}
