//! Serves a user whose editor speaks the Agent Client Protocol (ACP).
//!
//! Progress is sent as `session/update` notifications. A plan is reviewed through one permission
//! request, so the user runs or declines it as a whole.

pub mod wire;

use std::path::PathBuf;

use serde_json::{Value, json};

use self::wire::AcpWire;
use super::notice;
use super::summary::{Audience, Summary};
use crate::plan::run::Ending;
use crate::text::sanitize::sanitize_block;
use crate::ui::progress::AgentWork;
use crate::ui::style::TextArea;
use crate::workflow::user::{
    Approved, Choice, Decision, Event, NobodyToAsk, Question, ReviewRequest, User,
};

const MAX_DIFFERENCES: usize = 100;
const MAX_FILE: usize = 1 << 20;
const RUN: &str = "run";

/// A command that the editor offers to its user, typed as `/name input`.
#[derive(Debug)]
pub struct EditorCommand {
    /// Without the slash.
    pub name: &'static str,
    /// A sentence.
    pub description: &'static str,
    /// Shown in place of the input. Empty if there is none.
    pub hint: &'static str,
}

/// The [`User`] of an ACP client.
pub struct AcpUser<'a> {
    wire: &'a mut AcpWire,
    session: String,
    /// Root of the project. The protocol requires absolute paths.
    root: PathBuf,
    /// Label and ACP status of each action of the running plan.
    entries: Vec<(String, &'static str)>,
    /// `toolCallId` of the running plan.
    call: Option<String>,
    work: AgentWork,
    questions: usize,
}

impl<'a> AcpUser<'a> {
    /// Returns the user of one ACP session.
    pub fn new(wire: &'a mut AcpWire, session: &str, root: PathBuf) -> AcpUser<'a> {
        AcpUser {
            wire,
            session: session.to_owned(),
            root,
            entries: Vec::new(),
            call: None,
            work: AgentWork::default(),
            questions: 0,
        }
    }

    /// Sends the request of an earlier turn.
    pub fn send_request(&mut self, text: &str) {
        self.chunk("user_message_chunk", text);
    }

    /// Sends the commands that the user can type as a prompt.
    pub fn send_commands(&mut self, commands: &[EditorCommand]) {
        let command = |command: &EditorCommand| {
            let mut value = json!({ "name": command.name, "description": command.description });
            if !command.hint.is_empty() {
                value["input"] = json!({ "hint": command.hint });
            }
            value
        };
        let commands: Vec<Value> = commands.iter().map(command).collect();
        self.update(&json!({
            "sessionUpdate": "available_commands_update", "availableCommands": commands,
        }));
    }

    /// Sends a Markdown message.
    pub fn send_text(&mut self, text: &str) {
        self.chunk("agent_message_chunk", text);
    }

    fn chunk(&mut self, kind: &str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let text = format!("{}\n\n", sanitize_block(text.trim_end()));
        let block = json!({ "type": "text", "text": text });
        self.update(&json!({ "sessionUpdate": kind, "content": block }));
    }

    fn update(&mut self, update: &Value) {
        self.wire.update(&self.session, update);
    }

    fn send_entries(&mut self) {
        let entry = |(label, status): &(String, &'static str)| json!({ "content": sanitize_block(label), "priority": "medium", "status": status });
        let entries: Vec<Value> = self.entries.iter().map(entry).collect();
        self.update(&json!({ "sessionUpdate": "plan", "entries": entries }));
    }

    fn send_status(&mut self, status: &str) {
        if let Some(call) = self.call.clone() {
            self.update(
                &json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": status }),
            );
        }
    }

    /// Reports how the plan ended.
    pub fn ended(&mut self, has_failed: bool) {
        self.send_status(if has_failed { "failed" } else { "completed" });
        self.call = None;
    }

    fn differences(&self, proposal: &ReviewRequest<'_>) -> Vec<Value> {
        let actions = proposal.plan.actions.iter();
        let steps = actions.zip(&proposal.simulation.steps);
        // Outer `None`: too large or not UTF-8. Inner `None`: the file does not exist.
        let text = |bytes: &Option<Vec<u8>>| match bytes {
            Some(bytes) if bytes.len() <= MAX_FILE => {
                String::from_utf8(bytes.clone()).ok().map(Some)
            }
            Some(_) => None,
            None => Some(None),
        };
        let difference = |(action, step): (&crate::plan::action::Action, &_)| {
            let step: &crate::plan::validate::Step = step;
            // A deletion has no new text, so it is not sent as a diff.
            let (old, new) = (text(&step.before)?, text(&step.after)??);
            let target = action.kind.target();
            let path = self.root.join(target.trim_start_matches('/'));
            Some(json!({ "type": "diff", "path": path, "oldText": old, "newText": new }))
        };
        steps.filter_map(difference).take(MAX_DIFFERENCES).collect()
    }
}

impl User for AcpUser<'_> {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        let plan = proposal.plan;
        self.send_text(&plan.rationale);
        let entries = plan.actions.iter();
        self.entries = entries
            .map(|action| {
                let label = format!("{} {}", action.kind.name(), action.kind.target());
                (label.trim_end().to_owned(), "pending")
            })
            .collect();
        self.send_entries();

        let summary = Summary::new(proposal, Audience::Informed);
        let lines = summary.lines(TextArea::UNLIMITED);
        let text: String = lines.iter().map(|line| line.text() + "\n").collect();
        let mut blocks =
            vec![json!({ "type": "content", "content": { "type": "text", "text": text } })];
        blocks.extend(self.differences(proposal));
        let call = format!("{}-{}", proposal.session, proposal.turn);
        self.call = Some(call.clone());
        let title = sanitize_block(&plan.title);
        self.update(&json!({
            "sessionUpdate": "tool_call", "toolCallId": call, "kind": "execute",
            "title": title, "status": "pending", "content": blocks,
        }));

        let options = json!([
            { "optionId": RUN, "name": "Run this plan", "kind": "allow_once" },
            { "optionId": "reject", "name": "Don't run it", "kind": "reject_once" },
        ]);
        let asked = json!({
            "sessionId": self.session, "options": options,
            // Complete, because some editors show the request without the call before it.
            "toolCall": {
                "toolCallId": call, "kind": "execute", "title": title, "status": "pending",
                "content": blocks,
            },
        });
        let answer = self.wire.request("session/request_permission", &asked);
        let outcome = answer.map(|answer| answer["outcome"].clone());
        let outcome = outcome.unwrap_or_default();

        Ok(match outcome["outcome"].as_str() {
            Some("selected") if outcome["optionId"] == RUN => {
                self.send_status("in_progress");
                Decision::Run(Approved::all(plan))
            }
            Some("selected") => {
                self.ended(true);
                // An empty message: with `None`, the workflow would ask for one.
                Decision::Skip(Some(String::new()))
            }
            // Cancelled, or the client has disconnected.
            _ => {
                self.ended(true);
                Decision::Quit
            }
        })
    }

    fn ask(&mut self, _question: &Question<'_>) -> anyhow::Result<Option<String>> {
        // ACP has no free-text question: the user answers with the next prompt.
        Ok(None)
    }

    fn choose(&mut self, question: &str, choices: &[Choice<'_>]) -> anyhow::Result<Option<usize>> {
        self.questions += 1;
        let options: Vec<Value> = choices.iter().map(option).collect();
        let call = format!("question-{}", self.questions);
        let asked = json!({
            "sessionId": self.session, "options": options,
            "toolCall": { "toolCallId": call, "title": sanitize_block(question), "kind": "other", "status": "pending" },
        });
        let answer = self.wire.request("session/request_permission", &asked);
        let outcome = answer.map(|answer| answer["outcome"].clone());
        let outcome = outcome.unwrap_or_default();
        let chosen = |choice: &Choice<'_>| outcome["optionId"] == choice.key.to_string();
        Ok(match outcome["outcome"].as_str() {
            Some("selected") => choices.iter().position(chosen),
            _ => None,
        })
    }

    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool> {
        let message = format!("an editor cannot answer `{question}`");
        Err(NobodyToAsk::new(message, format!("`{flag}` says yes")).into())
    }

    fn report(&mut self, event: Event<'_>) {
        match event {
            Event::Asking { model, tokens, .. } => {
                let text = format!("Asking {model} with about {tokens} tokens.");
                self.chunk("agent_thought_chunk", &text);
            }
            Event::Working { progress, .. } => {
                let lines = self.work.feed(progress);
                let text: Vec<String> = lines.iter().map(|line| line.text()).collect();
                self.chunk("agent_thought_chunk", &text.join("\n"));
            }
            Event::Rejected { diagnostics, .. } => {
                let count = diagnostics.len();
                let text = format!("The plan has {count} mistakes and was not run.");
                self.chunk("agent_thought_chunk", &text);
            }
            Event::Started { index, .. } => self.stand(index, "in_progress"),
            Event::Finished { index, outcome } => {
                self.stand(index, "completed");
                if outcome.ending == Ending::Failure {
                    self.send_text(&format!("Failed: {}", outcome.detail));
                }
            }
            Event::Notice(notice) => {
                let lines = notice::lines(&notice);
                let text: Vec<String> = lines.iter().map(|line| line.text()).collect();
                self.chunk("agent_thought_chunk", &text.join("\n"));
            }
            // The reply is a plan, and `review` shows it.
            Event::Received { .. } | Event::Answered | Event::Filling(_) | Event::Output { .. } => {
            }
        }
    }
}

fn option(choice: &Choice<'_>) -> Value {
    let kind = match choice.key {
        'a' => "allow_always",
        'n' | 'q' | 'l' => "reject_once",
        _ => "allow_once",
    };
    // Labels mark their key in parentheses, which an editor does not use.
    let name = choice.label.replace(['(', ')'], "");
    json!({ "optionId": choice.key.to_string(), "name": name, "kind": kind })
}

impl AcpUser<'_> {
    fn stand(&mut self, index: usize, status: &'static str) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.1 = status;
            self.send_entries();
        }
    }
}
