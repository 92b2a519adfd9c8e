//! The loop of `start` and `resume`, and its prompt: `/` for commands, `!` for the shell, `@` for
//! files.

pub(super) mod message;

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;

use rustix::process::Signal;

use message::{
    COMMANDS, PromptAct, PromptCommand, PromptLine, add_mentioned, add_or_warn, help,
    is_meant_for_shell,
};

use super::app::App;
use super::execute::{
    code, in_doubt, json as turn_json, note_replanned, report_conclusion, report_question, show,
};
use super::exit::{self, ExitStatus};
use super::failure::{ANSWER, Unfinished};
use super::number;
use super::plan::{PlanFlags, json as plan_json};
use crate::host::shell::{Capture, Shell};
use crate::host::{foreground, interrupt, process};
use crate::project::Project;
use crate::session::artifact;
use crate::text::counted;
use crate::text::fence::fence_for;
use crate::text::sanitize::sanitize_line;
use crate::ui::ask::{self, Reply};
use crate::ui::prompt::PromptHelp;
use crate::ui::style::{StyledLine, Tone};
use crate::ui::terminal;
use crate::workflow::context::message::RAN;
use crate::workflow::execute::result::RecordedTurn;
use crate::workflow::lifecycle::hand_to_agent;
use crate::workflow::model::{agents, choose};
use crate::workflow::resume::{Console, Ended, ResumeOptions, Resumed, Typed, resume};
use crate::workflow::user::{EmptyInput, Question};

/// How a loop goes.
#[derive(clap::Args)]
pub(super) struct LoopFlags {
    #[command(flatten)]
    pub wanted: PlanFlags,
    /// Approve every plan
    #[arg(short, long)]
    yes: bool,
    /// Run unattended: approve every plan and keep going
    #[arg(long)]
    yolo: bool,
    /// Stop after this many turns
    #[arg(long, value_name = "N", value_parser = number::turns::<u32>)]
    max_turns: Option<u32>,
    /// Stop before the session costs more than this; overrides `limits.cost`
    #[arg(long, value_name = "USD", value_parser = number::dollars)]
    max_cost: Option<f64>,
}

/// Runs the loop of `start` and `resume`, and prints each turn when it is recorded.
pub(super) fn run_loop(
    app: &App,
    mut project: Project,
    message: Option<String>,
    how: LoopFlags,
) -> anyhow::Result<ExitStatus> {
    let is_alone = !app.is_attended() || how.yolo;
    let options = ResumeOptions {
        alone: !app.is_attended(),
        message,
        yolo: how.yolo,
        max_turns: how.max_turns,
        max_cost: how.max_cost,
        depth: how.wanted.context_depth,
        model: how.wanted.model,
        pipeline: how.wanted.pipeline,
    };

    let mut user = app.helped_user(&project, how.yes || how.yolo, help(app));
    let mut console = LoopConsole {
        app,
        has_prompt: !is_alone,
        turns: Vec::new(),
        attached: Vec::new(),
    };
    let resumed = resume(&mut project, options, user.as_mut(), &mut console);

    drop(user);
    let turns = console.turns;
    let resumed = resumed.map_err(|error| {
        let partial = loop_json(&turns, None);
        Unfinished { partial, error }
    })?;
    if app.global.json {
        app.print_json(&loop_json(&turns, Some(&resumed)))?;
    } else {
        report_end(app, &resumed)?;
    }

    Ok(code_of(&resumed, is_alone))
}

/// Explains why the loop ended, unless the user knows.
fn report_end(app: &App, resumed: &Resumed) -> anyhow::Result<()> {
    match &resumed.ended {
        // At a terminal, the question is still on the screen.
        Ended::Question(_) if app.is_attended() => {
            app.note(&format!("The model waits for your answer: {ANSWER}."));
        }
        Ended::Question(question) => report_question(app, question, ANSWER)?,
        Ended::Complete(conclusion) if resumed.last.is_none() => {
            report_conclusion(app, conclusion)?;
            app.note("Next: teddy resume '...', if there is more to do");
        }
        ended => {
            stopped(ended).iter().for_each(|why| app.note(why));
            if let (Ended::Turns(_) | Ended::Cost { .. }, Some(planned)) = (ended, &resumed.waiting)
            {
                note_replanned(app, planned);
            }
        }
    }
    Ok(())
}

/// Explains why a loop stopped early; `None` if it did not.
fn stopped(ended: &Ended) -> Option<String> {
    Some(match ended {
        Ended::Left | Ended::Failed | Ended::Complete(_) => return None,
        Ended::InputCut => {
            "stopped: the server read only a part of the input; the plan is waiting".to_owned()
        }
        Ended::NoPlan => "stopped: the model answers without a plan".to_owned(),
        Ended::Question(_) => "stopped: the model asks you something".to_owned(),
        Ended::Undecided(turn) => format!("Nothing was run; the plan of turn {turn} is waiting."),
        Ended::InDoubt(turn) => in_doubt(*turn),
        Ended::Overlap => "stopped: the result is not in all of your files".to_owned(),
        Ended::Rejected => "stopped: the plan was rejected, and no other plan is waiting".to_owned(),
        Ended::Turns(turns) => format!("stopped after {}", counted(*turns as usize, "turn")),
        Ended::Cost { used: spent, limit } => {
            format!("stopped: the session has cost ${spent:.2}, and the limit is ${limit:.2}")
        }
        Ended::NextCall(why) => format!("stopped: {why}"),
        Ended::Repeated => {
            "stopped: the model wrote the same plan again; it is waiting, and `teddy execute` runs it"
                .to_owned()
        }
    })
}

/// Returns the exit code of a loop. `is_alone` if no user was present.
fn code_of(resumed: &Resumed, is_alone: bool) -> ExitStatus {
    if interrupt::requested() {
        return exit::INTERRUPTED;
    }

    let last = resumed
        .last
        .as_ref()
        .map_or(exit::SUCCESS, |last| code(last));
    match resumed.ended {
        Ended::Failed => exit::FAILED,
        Ended::Question(_) | Ended::InDoubt(_) | Ended::NoPlan | Ended::InputCut => exit::WAITS,
        Ended::Turns(_) | Ended::Cost { .. } | Ended::NextCall(_) | Ended::Repeated
            if is_alone && last == exit::SUCCESS =>
        {
            exit::WAITS
        }
        _ => last,
    }
}

/// Returns the result as JSON. `None` for a loop that failed: only its turns are listed.
fn loop_json(turns: &[serde_json::Value], resumed: Option<&Resumed>) -> serde_json::Value {
    let ended = resumed.map(|resumed| &resumed.ended);
    serde_json::json!({
        "turns": turns,
        "waiting": resumed.and_then(|resumed| resumed.waiting.as_ref()).map(plan_json),
        "question": match ended {
            Some(Ended::Question(question)) => Some(question),
            _ => None,
        },
        "conclusion": match ended {
            Some(Ended::Complete(conclusion)) => Some(conclusion),
            _ => None,
        },
        "stopped": ended.and_then(stopped),
    })
}

struct LoopConsole<'a> {
    app: &'a App,
    /// The user decides at the prompt how the loop continues.
    has_prompt: bool,
    /// Recorded turns, if they are printed at the end.
    turns: Vec<serde_json::Value>,
    /// Shell output to send with the next message.
    attached: Vec<String>,
}

impl LoopConsole<'_> {
    fn command(
        &mut self,
        project: &Project,
        command: PromptCommand,
        arguments: &str,
    ) -> anyhow::Result<Typed> {
        match command.act {
            PromptAct::Quit => return Ok(Typed::Leave),
            PromptAct::Help => self.help(),
            PromptAct::Run(args) => self.run(project, args, arguments)?,
            PromptAct::Plan if arguments.is_empty() => self.plan(project)?,
            PromptAct::Plan => return Ok(self.message(project, arguments.to_owned())),
            PromptAct::Model if arguments.is_empty() => self.models(project),
            PromptAct::Model => match choose::model_settings(project, arguments) {
                Ok(_) => {
                    self.app.note(&format!(
                        "{} answers from now on.",
                        sanitize_line(arguments)
                    ));
                    return Ok(Typed::Model(arguments.to_owned()));
                }
                Err(error) => drop(self.app.fail(error)),
            },
            PromptAct::Agent if arguments.is_empty() => self.agents(project),
            PromptAct::Agent => {
                let mut user = self.app.user(project, false);
                match hand_to_agent(project, arguments, user.as_mut()) {
                    Ok(name) => self
                        .app
                        .note(&format!("The agent {name} plans from now on.")),
                    Err(error) => drop(self.app.fail(error)),
                }
            }
        }

        Ok(Typed::Done)
    }

    /// Runs a command line. An error is reported, and the prompt returns.
    fn run(&self, project: &Project, args: &[&str], arguments: &str) -> anyhow::Result<()> {
        let Some(more) = shlex::split(arguments) else {
            self.app.warn("a quote is not closed");
            return Ok(());
        };

        // The options of this call or another terminal can name another session.
        let session = project.session()?;
        let session = ["--session", session.as_str()];
        let args = session.iter().chain(args).map(|&word| word.to_owned());
        let args = args.chain(more).collect();
        if let Err(error) = super::run_nested(self.app, args) {
            self.app.fail(error);
        }
        Ok(())
    }

    fn plan(&self, project: &Project) -> anyhow::Result<()> {
        let tip = project.store().tip(&project.session()?)?;
        for turn in project.store().history(tip) {
            let turn = turn?;
            if turn.text(&project.repository, artifact::PLAN)?.is_some() {
                return self.run(project, &["show"], &format!("{} plan.md", turn.number()));
            }
        }

        self.app.note("There is no plan yet.");
        Ok(())
    }

    fn help(&self) {
        let usage = |command: &PromptCommand| format!("/{} {}", command.name, command.arguments);
        let widest = COMMANDS.iter().map(|command| usage(command).len()).max();
        let width = widest.unwrap_or_default();
        for command in COMMANDS {
            self.app
                .note(&format!("  {:width$}  {}", usage(command), command.about));
        }
        self.app.note(&format!(
            "  {:width$}  run a command in your files, and show the model what it says",
            "!COMMAND"
        ));
        self.app.note(&format!(
            "  {:width$}  show the model a file; the tab key completes its name",
            "@FILE"
        ));
        self.app.note(
            "Anything else is a message for the model. A space before a / or ! makes it one.",
        );
    }

    fn models(&self, project: &Project) {
        let session = project.session().ok();
        if let Some(model) = session.and_then(|session| project.session_model(&session)) {
            self.app
                .note(&format!("Of this session: {}", sanitize_line(&model)));
        }
        let usual = project.settings.model.as_deref().unwrap_or("none");
        self.app.note(&format!("Configured: {usual}"));
        for name in project.settings.models.keys() {
            self.app.note(&format!("  {}", sanitize_line(name)));
        }
        self.app
            .note("Anything that `--model` takes can be named, such as `/model openai:gpt-5`.");
    }

    fn agents(&self, project: &Project) {
        for prompt in agents::prompts(project).all() {
            self.app.note(&format!(
                "  {:12}  {}",
                sanitize_line(&prompt.name),
                sanitize_line(&prompt.description)
            ));
        }
    }

    /// Adds the files that a message mentions to the context, and returns the message with the
    /// attached output.
    fn message(&mut self, project: &Project, text: String) -> Typed {
        if let Err(error) = add_mentioned(self.app, project, &text) {
            self.app.fail(error);
            return Typed::Done;
        }
        Typed::Message(with_output(text, std::mem::take(&mut self.attached)))
    }
}

fn with_output(text: String, attached: Vec<String>) -> String {
    let parts = [text].into_iter().chain(attached);
    parts.collect::<Vec<_>>().join("\n\n")
}

/// Asks for the message that a session is started with. `None` if the user leaves.
pub(super) fn first_message(app: &App, project: &Project) -> anyhow::Result<Option<String>> {
    let question = Question::NextTurn {
        session: "new session",
        turn: 1,
        empty: EmptyInput::Nothing,
        takes_commands: false,
    };
    let (mut attached, mut typed) = (Vec::new(), None);
    loop {
        let text = match typed.take() {
            Some(text) => text,
            None => {
                let rules = PromptHelp {
                    // They are below: this prompt runs `!COMMAND`.
                    check: PromptHelp::default().check,
                    ..help(app)
                };
                let mut user = app.helped_user(project, false, rules);
                match user.ask(&question)? {
                    Some(text) => text,
                    None => return Ok(None),
                }
            }
        };
        match PromptLine::read(&text) {
            PromptLine::Shell(command) => {
                let end = run_shell(app, project, command)?;
                attached.extend(end.attached);
                typed = end.next;
            }
            PromptLine::Command(command, _) if command.act == PromptAct::Quit => return Ok(None),
            PromptLine::Command(..) | PromptLine::Unknown(..) => {
                ask::show(&[ask::misplaced_command(true)], app.paint(true));
            }
            _ if is_meant_for_shell(&text, true)? => {}
            _ => return Ok(Some(with_output(text, attached))),
        }
    }
}

impl Console for LoopConsole<'_> {
    fn recorded(&mut self, project: &Project, turn: &RecordedTurn) -> anyhow::Result<()> {
        match self.app.global.json {
            true => self.turns.push(turn_json(turn)),
            false => show(self.app, turn, self.has_prompt)?,
        }
        // Only now is there a turn for them.
        if let Some(text) = turn.typed_instead() {
            add_or_warn(self.app, project, text);
        }
        Ok(())
    }

    fn failed(&mut self, error: anyhow::Error) {
        self.app.fail_with(error, at_prompt);
    }

    fn typed(&mut self, project: &mut Project, text: String) -> anyhow::Result<Typed> {
        let typed = self.take(project, text)?;
        // Interrupting one of our commands also leaves the loop.
        Ok(if interrupt::requested() {
            Typed::Leave
        } else {
            typed
        })
    }
}

impl LoopConsole<'_> {
    fn take(&mut self, project: &Project, text: String) -> anyhow::Result<Typed> {
        match PromptLine::read(&text) {
            PromptLine::Message(_) => match is_meant_for_shell(&text, true)? {
                true => Ok(Typed::Done),
                false => Ok(self.message(project, text)),
            },
            PromptLine::Command(command, arguments) => self.command(project, command, arguments),
            PromptLine::Shell(command) => {
                let end = run_shell(self.app, project, command)?;
                self.attached.extend(end.attached);
                match end.next {
                    Some(text) => self.take(project, text),
                    None => Ok(Typed::Done),
                }
            }
            PromptLine::Unknown(word, near) => {
                let near = near.map_or_else(
                    || "`/help` lists the commands".to_owned(),
                    |near| format!("did you mean `/{near}`?"),
                );
                let word = sanitize_line(word);
                self.app
                    .warn(&format!("there is no command `/{word}`; {near}"));
                Ok(Typed::Done)
            }
        }
    }
}

/// Keys and commands of the prompt that do what a hint says.
const AT_PROMPT: [(&str, &str); 3] = [
    ("run `teddy plan` again", "press enter"),
    ("`--model`", "`/model`"),
    ("`teddy context list`", "`/context`"),
];

fn at_prompt(hint: String) -> String {
    AT_PROMPT
        .iter()
        .fold(hint, |hint, (command, key)| hint.replace(command, key))
}

/// Bytes of output sent to the model.
const MAX_SHELL_OUTPUT: usize = 32 * 1024;

const SHOW_OFFER: &str =
    "y and enter shows this to the model with your next message, enter continues";

/// Result of a shell command.
#[derive(Debug, Default)]
struct ShellEnd {
    /// Output to send with the next message.
    pub attached: Option<String>,
    /// Text typed instead of an answer to the question.
    pub next: Option<String>,
}

fn describe_failure(command: &str, status: std::process::ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("`{command}` exited with {code}."),
        None if status.signal() == Some(Signal::INT.as_raw()) => {
            format!("`{command}` was interrupted (SIGINT).")
        }
        None => format!("`{command}` was ended: {status}."),
    }
}

/// Runs a command in the current directory, shows its output, and returns it if the user wants to
/// send it with the next message.
fn run_shell(app: &App, project: &Project, text: &str) -> anyhow::Result<ShellEnd> {
    if text.is_empty() {
        app.note("`!` runs a command in your files, as in `!make test`.");
        return Ok(ShellEnd::default());
    }

    let setting = project.settings.execute.shell.as_deref();
    let argv = Shell::new(setting, "").words();
    let mut command = process::command(&argv[0]);
    command.args(&argv[1..]).arg("-c").arg(text);
    command.current_dir(app.dir()?);

    let mut capture = Capture::new(MAX_SHELL_OUTPUT);
    let status = match foreground::run_captured(&mut command, &mut |bytes| capture.add(bytes)) {
        Ok(status) => status,
        Err(error) => {
            app.warn(&format!("`{text}` did not run: {error}"));
            return Ok(ShellEnd::default());
        }
    };

    if !status.success() {
        app.note(&describe_failure(text, status));
    }
    let output = capture.finish().joined();
    // Our next line must not continue the command's last one.
    let end = if output.is_empty() || output.ends_with(b"\n") {
        ""
    } else {
        "\n"
    };
    let _ = write!(std::io::stderr().lock(), "{end}\x1b[0m");
    if output.is_empty() && status.success() {
        return Ok(ShellEnd::default());
    }
    offer_output(app, text, &status.to_string(), &output)
}

/// Asks whether the model sees the output of a command. Any other answer is the next input.
fn offer_output(app: &App, command: &str, status: &str, output: &[u8]) -> anyhow::Result<ShellEnd> {
    // Requires a line, not a key: keys typed while the command ran are not an answer.
    terminal::forget_typed()?;
    let show = |line| ask::show(&[line], app.paint(true));
    show(StyledLine::of(Tone::Strong, SHOW_OFFER));
    let reply = match ask::text("", None, app.paint(true))? {
        Reply::Text(reply) | Reply::Editor(reply) => reply,
        Reply::Quit(_) => String::new(),
    };
    let reply = reply.trim();
    if ["y", "yes"].contains(&reply.to_lowercase().as_str()) {
        let output = String::from_utf8_lossy(output);
        return Ok(ShellEnd {
            attached: Some(attachment(command, status, &output)),
            next: None,
        });
    }

    let is_no = ["", "n", "no"].contains(&reply.to_lowercase().as_str());
    Ok(ShellEnd {
        attached: None,
        next: (!is_no).then(|| reply.to_owned()),
    })
}

/// Returns a command and its output as part of a message.
fn attachment(command: &str, status: &str, output: &str) -> String {
    let fence = fence_for(output, 4);
    let output = output.trim_end();
    format!("{RAN}{command}` ({status}):\n\n{fence}text\n{output}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_what_works_at_the_prompt() {
        let check = |hint: &str, expected: &str| {
            assert_eq!(at_prompt(hint.to_owned()), expected);
        };
        check(
            "run `teddy plan` again, or use another model with `--model`",
            "press enter, or use another model with `/model`",
        );
        check("raise `limits.cost`", "raise `limits.cost`");
    }

    #[test]
    fn no_output_gets_out_of_its_fence() {
        assert_eq!(
            attachment("cat a.md", "exit status: 0", "````\nhi\n````\n"),
            "I ran `cat a.md` (exit status: 0):\n\n`````text\n````\nhi\n````\n`````"
        );
    }
}
