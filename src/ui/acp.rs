//! Serves a user whose editor speaks the Agent Client Protocol (ACP).
//!
//! Progress is sent as `session/update` notifications. A plan is reviewed through one permission
//! request, so the user runs or declines it as a whole.

pub mod wire;

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use uuid::Uuid;

use self::wire::AcpWire;
use super::notice;
use super::summary::{Audience, Summary};
use crate::model::acting::{
    AgentProgress, ContextUse, PermissionDecision, PermissionQuestion, ToolStatus, ToolUse,
};
use crate::plan::action::Action;
use crate::plan::run::Ending;
use crate::text::counted;
use crate::text::fence::fence_for;
use crate::text::sanitize::sanitize_block;
use crate::ui::progress::AgentWork;
use crate::ui::style::{self, Paint, StyledLine, TextArea};
use crate::workflow::act::permission::permission_text;
use crate::workflow::user::{
    Approved, Decision, Event, NobodyToAsk, Question, ReviewRequest, User,
};

const MAX_DIFFERENCES: usize = 100;
const MAX_FILE: usize = 1 << 20;
/// Tools of an agent inside that are sent.
const MAX_TOOLS: usize = 10_000;
const RUN: &str = "run";

/// A command that the editor offers to its user, typed as `/name input`.
#[derive(Debug)]
pub struct EditorCommand {
    /// Without the slash.
    pub name: &'static str,
    pub description: &'static str,
    /// Shown in place of the input. Empty if there is none.
    pub hint: &'static str,
}

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
    /// `toolCallId`s of the agent inside that the editor knows, without their prefix.
    tools: HashSet<String>,
    /// Part of the `toolCallId`s: an agent can count anew in each prompt.
    prefix: String,
    /// Permission requests for a call without an id.
    unnamed: usize,
    /// Cost of the session in US dollars: before the call of the model that runs, and of this call.
    spent: f64,
    cost: Option<f64>,
}

impl<'a> AcpUser<'a> {
    pub fn new(wire: &'a mut AcpWire, session: &str, root: PathBuf) -> AcpUser<'a> {
        AcpUser {
            wire,
            session: session.to_owned(),
            root,
            entries: Vec::new(),
            call: None,
            work: AgentWork::default(),
            tools: HashSet::new(),
            prefix: Uuid::now_v7().to_string(),
            unnamed: 0,
            spent: 0.0,
            cost: None,
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

    /// Sets what the session has cost before, in US dollars.
    pub fn set_spent(&mut self, dollars: f64) {
        self.spent = dollars;
    }

    /// Sends what is not an answer, such as progress.
    pub fn send_thought(&mut self, text: &str) {
        self.chunk("agent_thought_chunk", text);
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

    /// Shows what the agent inside does, as the editor shows its own agents.
    fn working(&mut self, progress: &AgentProgress<'_>) {
        let lines = match progress {
            AgentProgress::Tool(_) => self.work.flush_message(),
            _ => self.work.feed(progress),
        };
        self.send_lines(&lines);
        match progress {
            AgentProgress::Tool(tool) => self.send_tool(tool),
            AgentProgress::Used {
                cost,
                context: Some(context),
                ..
            } => self.send_usage(*cost, *context),
            AgentProgress::Used { cost, .. } => self.cost = cost.or(self.cost),
            _ => {}
        }
    }

    fn send_lines(&mut self, lines: &[StyledLine]) {
        let text: Vec<String> = lines.iter().map(StyledLine::text).collect();
        self.send_thought(&text.join("\n"));
    }

    fn send_tool(&mut self, tool: &ToolUse) {
        // An agent can invent any number of ids.
        if self.tools.len() >= MAX_TOOLS && !self.tools.contains(&tool.id) {
            return;
        }
        let update = match self.tools.insert(tool.id.clone()) {
            true => "tool_call",
            false => "tool_call_update",
        };
        let title = match tool.title.as_str() {
            "" => "a tool",
            title => title,
        };
        let exit = tool.exit_code.map(|code| format!("exit code {code}"));
        let texts = [Some(tool.result.clone()), exit];
        let texts = texts.into_iter().flatten().filter(|text| !text.is_empty());
        self.update(&json!({
            "sessionUpdate": update, "toolCallId": self.call_id(&tool.id),
            "title": title, "kind": tool_kind(&tool.kind), "status": tool_status(tool.status),
            "content": texts.map(|text| text_block(&text)).collect::<Vec<_>>(),
        }));
    }

    /// The protocol requires the context window, so without one nothing is sent.
    fn send_usage(&mut self, cost: Option<f64>, context: ContextUse) {
        self.cost = cost.or(self.cost);
        let ContextUse { used, size } = context;
        let mut update = json!({ "sessionUpdate": "usage_update", "used": used, "size": size });
        if let Some(cost) = self.cost {
            update["cost"] = json!({ "amount": self.spent + cost, "currency": "USD" });
        }
        self.update(&update);
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

    /// Asks for a permission and returns the id of the chosen option. `None` if the request was
    /// cancelled, or the client has disconnected.
    fn request_permission(&mut self, options: &Value, tool_call: &Value) -> Option<String> {
        let asked = json!({
            "sessionId": self.session, "options": options, "toolCall": tool_call,
        });
        let answer = self.wire.request("session/request_permission", &asked)?;
        let outcome = &answer["outcome"];
        let is_chosen = outcome["outcome"] == "selected";
        is_chosen.then(|| outcome["optionId"].as_str().unwrap_or_default().to_owned())
    }

    /// Id of a call of the agent inside, for the editor.
    fn call_id(&self, tool: &str) -> String {
        format!("{}-{tool}", self.prefix)
    }

    fn stand(&mut self, index: usize, status: &'static str) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.1 = status;
            self.send_entries();
        }
    }
}

impl User for AcpUser<'_> {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        let plan = proposal.plan;
        self.send_text(&plan.rationale);
        let labels = plan.actions.iter().map(label);
        self.entries = labels.map(|label| (label, "pending")).collect();
        self.send_entries();

        let summary = Summary::new(proposal, Audience::Informed);
        let text = style::text(&summary.lines(TextArea::UNLIMITED), Paint::Bare);
        let mut blocks = vec![code_block(&text)];
        blocks.extend(self.differences(proposal));
        let call = format!("{}-{}", proposal.session, proposal.turn);
        self.call = Some(call.clone());
        let title = sanitize_block(&plan.title);
        let tool_call = json!({
            "toolCallId": call, "kind": "execute", "title": title, "status": "pending",
            "content": blocks,
        });
        let mut update = tool_call.clone();
        update["sessionUpdate"] = json!("tool_call");
        self.update(&update);

        // Complete, because some editors show the request without the call before it.
        Ok(
            match self
                .request_permission(&review_options(), &tool_call)
                .as_deref()
            {
                Some(RUN) => {
                    self.send_status("in_progress");
                    Decision::Run(Approved::all(plan))
                }
                Some(_) => {
                    self.ended(true);
                    // An empty message: with `None`, the workflow would ask for one.
                    Decision::Skip(Some(String::new()))
                }
                None => {
                    self.ended(true);
                    Decision::Quit
                }
            },
        )
    }

    fn ask(&mut self, _question: &Question<'_>) -> anyhow::Result<Option<String>> {
        // ACP has no free-text question: the user answers with the next prompt.
        Ok(None)
    }

    fn permit(
        &mut self,
        agent: &str,
        question: &PermissionQuestion,
    ) -> anyhow::Result<Option<PermissionDecision>> {
        let text = permission_text(agent, question);
        // An editor shows the title on one line.
        let (title, details) = text.split_once('\n').unwrap_or((&text, ""));
        let mut content = vec![code_block(&sanitize_block(details))];
        content.extend(question.differences.iter().map(|it| {
            let path = self.root.join(&it.path);
            json!({ "type": "diff", "path": path, "oldText": it.old, "newText": it.new })
        }));
        let call = match question.tool.as_str() {
            "" => {
                self.unnamed += 1;
                // Unique: editors take calls with the same id for one.
                format!("{}.{}", self.prefix, self.unnamed)
            }
            tool => self.call_id(tool),
        };
        let tool_call = json!({
            "toolCallId": call, "title": sanitize_block(title),
            "kind": tool_kind(&question.kind), "status": "pending", "content": content,
        });
        let options = json!([
            { "optionId": "y", "name": "Yes, this time", "kind": "allow_once" },
            { "optionId": "a", "name": "Always in this turn", "kind": "allow_always" },
            { "optionId": "n", "name": "No", "kind": "reject_once" },
        ]);
        Ok(
            match self.request_permission(&options, &tool_call).as_deref() {
                Some("y") => Some(PermissionDecision::Once),
                Some("a") => Some(PermissionDecision::Always),
                Some("n") => Some(PermissionDecision::No),
                _ => None,
            },
        )
    }

    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool> {
        let message = format!("an editor cannot answer `{question}`");
        Err(NobodyToAsk::new(message, format!("`{flag}` says yes")).into())
    }

    fn report(&mut self, event: Event<'_>) {
        match event {
            Event::Asking { model, tokens, .. } => {
                let tokens = counted(tokens, "token");
                self.send_thought(&format!("Asking {model} with about {tokens}."));
            }
            Event::Working(progress) => self.working(progress),
            Event::Answered { .. } => {
                let lines = self.work.flush_message();
                self.send_lines(&lines);
                self.spent += self.cost.take().unwrap_or_default();
            }
            Event::Rejected { diagnostics, .. } => {
                let mistakes = counted(diagnostics.len(), "mistake");
                self.send_thought(&format!("The plan has {mistakes} and was not run."));
            }
            Event::Started { index, .. } => self.stand(index, "in_progress"),
            Event::Finished { index, outcome } => {
                self.stand(index, "completed");
                if outcome.ending == Ending::Failure {
                    self.send_text(&format!("Failed: {}", outcome.detail));
                }
            }
            Event::Notice(notice) => self.send_lines(&notice::lines(&notice)),
            // The reply is a plan, and `review` shows it.
            Event::Received { .. } | Event::Filling(_) | Event::Output { .. } => {}
        }
    }
}

/// A kind that the protocol knows.
fn tool_kind(kind: &str) -> &str {
    match kind {
        "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch"
        | "switch_mode" => kind,
        _ => "other",
    }
}

fn tool_status(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Pending => "pending",
        ToolStatus::Running => "in_progress",
        ToolStatus::Completed => "completed",
        ToolStatus::Failed => "failed",
    }
}

fn label(action: &Action) -> String {
    let label = format!("{} {}", action.kind.name(), action.kind.target());
    label.trim_end().to_owned()
}

fn review_options() -> Value {
    json!([
        { "optionId": RUN, "name": "Run this plan", "kind": "allow_once" },
        { "optionId": "reject", "name": "Don't run it", "kind": "reject_once" },
    ])
}

fn text_block(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

/// A text as it is. An editor would render it as Markdown, without the lines and the `*` of a command.
fn code_block(text: &str) -> Value {
    let fence = fence_for(text, 3);
    text_block(&format!("{fence}text\n{}\n{fence}", text.trim_end()))
}
