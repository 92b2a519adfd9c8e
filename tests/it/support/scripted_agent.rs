//! A shell script that speaks the Agent Client Protocol.
//!
//! A test supplies the work as shell code. The code finds `$line` (the request), `$mode` and these
//! functions: `message TEXT`, `thought TEXT`, `tool ID TITLE KIND STATUS`, `ask TITLE KIND [ID]` (sets
//! `$allowed` to `yes`, `no` or `cancelled`), `cost DOLLARS`, `update JSON`, `say LINE`. It can set
//! `$stop` and `$usage`, which end the prompt.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::TestRepo;

const SCRIPT: &str = r#"#!/bin/sh
say() { printf '%s\n' "$1"; }
answer() { say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
fail() { say '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":'"$1"',"message":"'"$2"'"}}'; }
update() {
    say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":'"$1"'}}'
}
chunk() {
    update '{"sessionUpdate":"'"$1"'","content":{"type":"text","text":"'"$2"'"}}'
}
message() { chunk agent_message_chunk "$1"; }
thought() { chunk agent_thought_chunk "$1"; }
tool() {
    update '{"sessionUpdate":"tool_call","toolCallId":"'"$1"'","title":"'"$2"'","kind":"'"$3"'","status":"'"$4"'"}'
}
cost() { update '{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":'"$1"',"currency":"USD"}}'; }
ask() {
    say '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"'"${3-t}"'","title":"'"$1"'","kind":"'"$2"'"},"options":[{"optionId":"y","kind":"allow_once"},{"optionId":"a","kind":"allow_always"},{"optionId":"n","kind":"reject_once"}]}}'
    while read -r reply; do
        case $reply in
        *'"id":"q"'*'"optionId":"y"'*) allowed=yes; return ;;
        *'"id":"q"'*'"optionId":"n"'*) allowed=no; return ;;
        *'"id":"q"'*) allowed=cancelled; return ;;
        esac
    done
}
greet() { answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":false,"sessionCapabilities":{"resume":{}}},"agentInfo":{"name":"scripted","version":"1.2.3"},"authMethods":[{"id":"login","name":"Log in"}]}'; }
new() { answer '{"sessionId":"s-1","modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"free"}]},"models":{"availableModels":[]}}'; }
resume() { answer '{"modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"free"}]}}'; }
cancelled() { :; }
mode=default
@PARTS@
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    stop=end_turn
    usage='{"inputTokens":100,"outputTokens":20,"totalTokens":120}'
    case $line in
    *'"method":"initialize"'*) greet ;;
    *'"method":"session/new"'*) new ;;
    *'"method":"session/resume"'*) resume ;;
    *'"method":"session/set_mode"'*) mode=${line#*\"modeId\":\"}; mode=${mode%%\"*}; answer '{}' ;;
    *'"method":"session/prompt"'*) work; answer '{"stopReason":"'"$stop"'","usage":'"$usage"'}' ;;
    *'"method":"session/cancel"'*) cancelled ;;
    *) fail -32601 'no such method' ;;
    esac
done
"#;

/// Makes an agent the model of a project. Another call changes what it does.
pub fn use_scripted_agent(repo: &TestRepo, work: &str) {
    let dir = repo.beside("agent");
    std::fs::create_dir_all(&dir).unwrap();
    let agent = scripted_agent(&dir, work);
    repo.configure(&format!(
        "model: scripted\nmodels:\n  scripted: {{ kind: acp, run: [{}] }}\n",
        agent.display()
    ));
}

/// Returns the path of the script: `acp:<path>` is a model.
pub fn scripted_agent(folder: &Path, work: &str) -> PathBuf {
    scripted_agent_with(folder, &format!("work() {{\n:\n{work}\n}}"))
}

/// `parts` can define the shell functions `work`, `greet`, `new`, `resume` and `cancelled`, which
/// replace the defaults, and any code that runs first.
pub fn scripted_agent_with(folder: &Path, parts: &str) -> PathBuf {
    script(folder, &SCRIPT.replace("@PARTS@", parts))
}

/// Returns the path of a plain command: `agent:<path> ...` is a model.
pub fn scripted_command(folder: &Path, work: &str) -> PathBuf {
    script(folder, &format!("#!/bin/sh\n{work}\n"))
}

fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("agent.sh");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}
