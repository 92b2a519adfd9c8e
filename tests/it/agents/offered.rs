//! What TeDDy offers to an agent program: its directory, its variables, its sandbox, and what it can ask
//! for in the protocol.

use std::path::PathBuf;
use std::sync::LazyLock;

use regex::Regex;
use teddy::host::sandbox::{Availability, availability};

use crate::scripted_agent::{scripted_agent_with, scripted_command};
use crate::support::overlay::overlays;
use crate::support::{Output, TestRepo, skipped};

/// A project with a dependency and a secret that git ignores, and a private key in the home directory.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file(".gitignore", "/deps\n.env\n")
        .file("a.txt", "one\n");
    repo.commit("init");
    let repo = repo
        .file("deps/lib", "dependency\n")
        .file(".env", "KEY=1\n")
        .file("../home/.ssh/id_test", "private\n");
    repo.done(&["new", "demo"]);
    repo
}

/// Returns a directory that is the agent's own, in which it also writes during a test.
fn state(repo: &TestRepo) -> PathBuf {
    let state = repo.beside("state");
    std::fs::create_dir(&state).unwrap();
    state
}

/// Asks an agent. `variables` are added to the user's.
fn ask(repo: &TestRepo, variables: &[(&str, &str)]) {
    let mut command = repo.teddy_command(&["plan", "-m", "make it", "--model", "mine"]);
    command
        .current_dir(repo.path())
        .envs(variables.iter().copied());
    Output::of(&mut command).check(0, &[]);
}

/// Prints what the agent has. Paths that differ between runs get a name.
const LOOK: &str = r#"
exec > "STATE/seen"
echo "directory: $(pwd)"
echo "input: $(sed -n 's/^# //p' | tr '\n' ';')"
for file in /proc/$$/fd/*; do
    case $(readlink "$file") in
    pipe:* | *agent.sh | STATE/seen | '') ;;
    *) echo "open file: $(readlink "$file")" ;;
    esac
done
echo
tr '\0' '\n' < /proc/$$/environ | sed '/^GIT_DEFAULT_/d; s,^PATH=.*,PATH=[path],; s,^TEDDY_RUN=.*,TEDDY_RUN=[run],' | sort
echo
for file in made.txt deps/lib .git/made "$TMPDIR/made" "$XDG_CACHE_HOME/made" /dev/shm/made STATE/made \
    ~/made ../made /etc/made; do
    (echo x > "$file") 2> /dev/null && echo "writes $file" || echo "cannot write $file"
done
for file in a.txt deps/lib .env ~/.ssh/id_test; do
    cat "$file" 2> /dev/null || echo "cannot read $file"
done
test "$(readlink /proc/$$/ns/net)" = 'NETWORK' && echo 'network: of the user' || echo 'network: its own'
test "$(readlink /proc/$$/ns/mnt)" = 'MOUNTS' && echo 'mounts: of the user' || echo 'mounts: its own'
kill -0 TESTING 2> /dev/null && echo 'signals others' || echo 'signals only its own processes'
unshare -U true 2> /dev/null && echo 'makes namespaces' || echo 'makes no namespaces'
echo "terminals: $(ls /dev/pts | tr '\n' ' ')"
rm -f made.txt
echo Done. >&2
"#;

#[test]
fn an_agent_program_has_its_worktree_its_keys_and_the_network_and_nothing_else() {
    if !overlays() || availability() != Availability::Full {
        return skipped("no overlays or no whole sandbox here");
    }
    let repo = project();
    let state = state(&repo);
    let dir = repo.beside("agent");
    std::fs::create_dir(&dir).unwrap();
    let namespace = |name: &str| {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}"));
        link.unwrap().display().to_string()
    };
    let look = LOOK
        .replace("STATE", &state.display().to_string())
        .replace("NETWORK", &namespace("net"))
        .replace("MOUNTS", &namespace("mnt"))
        .replace("TESTING", &std::process::id().to_string());
    let agent = scripted_command(&dir, &look);
    repo.configure(&format!(
        "models:\n  mine: {{ kind: agent, run: [{}], state: ['{}'], api_key_env: MINE_KEY }}\n",
        agent.display(),
        state.display()
    ));
    ask(
        &repo,
        &[
            ("MINE_KEY", "of-the-agent"),
            ("ANTHROPIC_API_KEY", "of-another"),
            ("GITHUB_TOKEN", "of-another"),
            ("DB_PASSWORD", "of-another"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("LD_PRELOAD", ""),
            ("EDITOR", "vi"),
            ("LC_ALL", "C.UTF-8"),
            ("UNKNOWN_TO_TEDDY", "1"),
        ],
    );
    let seen = std::fs::read_to_string(state.join("seen")).unwrap();
    static OWN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"/tmp/teddy-\w+/").unwrap());
    let seen = OWN.replace_all(&seen, "[tmp]/");
    insta::assert_snapshot!(repo.plain(&seen), @"
    directory: [dir]/repo
    input: Agent Invocation Payload;Message;
    open file: [tmp]/input

    CCACHE_DIR=[dir]/home/cache/teddy/tools/repo-[id]/ccache
    EDITOR=vi
    GIT_ATTR_NOSYSTEM=1
    GIT_AUTHOR_DATE=2026-01-02T03:04:05+00:00
    GIT_AUTHOR_EMAIL=test@localhost
    GIT_AUTHOR_NAME=Test
    GIT_COMMITTER_DATE=2026-01-02T03:04:05+00:00
    GIT_COMMITTER_EMAIL=test@localhost
    GIT_COMMITTER_NAME=Test
    GIT_CONFIG_COUNT=2
    GIT_CONFIG_GLOBAL=/dev/null
    GIT_CONFIG_KEY_0=gc.auto
    GIT_CONFIG_KEY_1=maintenance.auto
    GIT_CONFIG_NOSYSTEM=1
    GIT_CONFIG_VALUE_0=0
    GIT_CONFIG_VALUE_1=false
    GIT_EDITOR=:
    GIT_TERMINAL_PROMPT=0
    GOMODCACHE=[dir]/home/cache/teddy/tools/repo-[id]/go-mod
    HOME=[dir]/home
    LC_ALL=C.UTF-8
    MINE_KEY=of-the-agent
    NO_COLOR=1
    PATH=[path]
    PWD=[dir]/repo
    TEDDY_RUN=[run]
    TERM=dumb
    TMPDIR=[tmp]/tmp
    XDG_CACHE_HOME=[dir]/home/cache/teddy/tools/repo-[id]
    XDG_CONFIG_HOME=[dir]/home/config
    npm_config_cache=[dir]/home/cache/teddy/tools/repo-[id]/npm

    writes made.txt
    writes deps/lib
    writes .git/made
    writes [tmp]/tmp/made
    writes [dir]/home/cache/teddy/tools/repo-[id]/made
    writes /dev/shm/made
    writes [dir]/state/made
    cannot write [dir]/home/made
    cannot write ../made
    cannot write /etc/made
    one
    x
    cannot read .env
    cannot read [dir]/home/.ssh/id_test
    network: of the user
    mounts: its own
    signals only its own processes
    makes no namespaces
    terminals: ptmx
    ");
}

/// Decision 0021: only some agents would use them. Without them all write in the same way, in their
/// sandbox.
#[test]
fn an_agent_of_the_protocol_is_offered_no_files_and_no_terminals() {
    let repo = project();
    let state = state(&repo);
    let dir = repo.beside("agent");
    std::fs::create_dir(&dir).unwrap();
    let parts = r#"
note() { printf '%s\n' "$line" >> STATE/seen; }
greet() { note; answer '{"protocolVersion":1}'; }
new() { note; answer '{"sessionId":"s-1"}'; }
work() {
    note
    for method in fs/read_text_file fs/write_text_file terminal/create; do
        say '{"jsonrpc":"2.0","id":"'"$method"'","method":"'"$method"'","params":{"sessionId":"s-1","path":"'"$PWD"'/.env"}}'
        read -r line
        note
    done
    message Done
}"#;
    let parts = parts.replace("STATE", &state.display().to_string());
    let agent = scripted_agent_with(&dir, &parts);
    repo.configure(&format!(
        "models:\n  mine: {{ kind: acp, run: [{}], state: ['{}'] }}\n",
        agent.display(),
        state.display()
    ));
    ask(&repo, &[]);
    let seen = std::fs::read_to_string(state.join("seen")).unwrap();
    let lines = seen.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(text) = line.pointer_mut("/params/prompt/0/text") {
            *text = "[input]".into();
        }
        if let Some(version) = line.pointer_mut("/params/clientInfo/version") {
            *version = "[version]".into();
        }
        format!("{line}\n")
    });
    insta::assert_snapshot!(repo.plain(&lines.collect::<String>()), @r#"
    {"id":0,"jsonrpc":"2.0","method":"initialize","params":{"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false},"clientInfo":{"name":"teddy","title":"TeDDy","version":"[version]"},"protocolVersion":1}}
    {"id":1,"jsonrpc":"2.0","method":"session/new","params":{"cwd":"[dir]/repo","mcpServers":[]}}
    {"id":2,"jsonrpc":"2.0","method":"session/prompt","params":{"prompt":[{"text":"[input]","type":"text"}],"sessionId":"s-1"}}
    {"error":{"code":-32601,"message":"no method `fs/read_text_file`"},"id":"fs/read_text_file","jsonrpc":"2.0"}
    {"error":{"code":-32601,"message":"no method `fs/write_text_file`"},"id":"fs/write_text_file","jsonrpc":"2.0"}
    {"error":{"code":-32601,"message":"no method `terminal/create`"},"id":"terminal/create","jsonrpc":"2.0"}
    "#);
}

/// Bug: the sandbox hid the pipe with the input, and no agent was started.
#[test]
fn an_agent_is_started_with_temporary_files_in_shared_memory() {
    let Ok(temporary) = tempfile::tempdir_in("/dev/shm") else {
        return skipped("no shared memory here");
    };
    let repo = project();
    let dir = repo.beside("agent");
    std::fs::create_dir(&dir).unwrap();
    let work = "sed -n 's/^# //p' | head -1 > \"$TMPDIR/copy\"; cp \"$TMPDIR/copy\" made.txt";
    let agent = scripted_command(&dir, work);
    repo.configure(&format!(
        "models:\n  mine: {{ kind: agent, run: [{}] }}\n",
        agent.display()
    ));
    ask(&repo, &[("TMPDIR", temporary.path().to_str().unwrap())]);
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("made.txt"), "Agent Invocation Payload\n");
}
