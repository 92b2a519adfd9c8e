//! Asks the model of a role, and once more if the answer is malformed.
//!
//! The usage of all attempts counts. An answer that is unusable, or that no step could record, is
//! saved for the user; what it used is kept in `discarded`.

use std::cell::RefCell;

use anyhow::Context as _;

use super::{OpenChange, answers_in_change, change_dir, discarded, files_now};
use crate::change::document::Documents;
use crate::change::id::ChangeId;
use crate::change::state::StepUsage;
use crate::change::{proposal, review, spec};
use crate::git::object::BlobId;
use crate::host::file::write_atomic;
use crate::model::{Finish, ModelAnswer, ModelRequest, price};
use crate::session::input::{self, language, write_block};
use crate::text::counted;
use crate::text::hint::error_with_hint;
use crate::text::sanitize::sanitize_line;
use crate::text::secret::redact;
use crate::workflow::model::budget::{self, CostBudget, MeteredModel, TokenEstimate};
use crate::workflow::model::choose::{self, NoModel};
use crate::workflow::model::request::{ask_one, report_unknown};
use crate::workflow::user::{Event, Notice};

const MAX_ANSWERS: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Author,
    Challenger,
    Implementer,
    Reviewer,
}

impl Role {
    pub(super) fn word(self) -> &'static str {
        match self {
            Role::Author => "author",
            Role::Challenger => "challenger",
            Role::Implementer => "implementer",
            Role::Reviewer => "reviewer",
        }
    }
}

pub(super) struct RoleQuestion<'a> {
    pub role: Role,
    /// For messages: `proposal.md`.
    pub about: &'a str,
    pub system: String,
    pub input: String,
    pub message: String,
}

pub(super) type ReadAnswer<'a, T> = &'a dyn Fn(&str) -> Result<T, Vec<String>>;

impl OpenChange<'_> {
    /// The option, the role's setting, or the default model.
    pub(super) fn role_model(&self, role: Role) -> Result<String, NoModel> {
        let settings = &self.project.settings;
        let configured = settings.change.roles.get(role.word());
        let model = self.request.model.as_ref().or(configured);
        model
            .or(settings.model.as_ref())
            .cloned()
            .ok_or(NoModel::Document)
    }

    /// Fails for a model that edits files itself.
    pub(super) fn answering_model(&self, role: Role) -> anyhow::Result<String> {
        let name = self.role_model(role)?;
        if !choose::model_settings(self.project, &name)?
            .kind
            .is_acting()
        {
            return Ok(name);
        }

        let role = role.word();
        Err(error_with_hint(
            format!("`{name}` edits files itself, and the {role} of a change answers with a text"),
            format!(
                "`--model` is for every role of the change; `change.roles.{role}` in your configuration names a model for this one"
            ),
        ))
    }

    /// Returns the parsed answer and the usage of all attempts.
    pub(super) fn ask<T>(
        &mut self,
        question: RoleQuestion<'_>,
        read: ReadAnswer<'_, T>,
    ) -> anyhow::Result<(T, StepUsage)> {
        let name = self.answering_model(question.role)?;
        let answered = answers_in_change(self.project, &self.change.id, &name)?;
        let chosen = choose::model_after(self.project, &name, answered)?;
        let budget = CostBudget::new(
            budget::spent_on_change(self.project, &self.change.id)?,
            self.project.settings.limits.cost,
        );
        let model = MeteredModel {
            chosen,
            env: None,
            budget,
            weight: TokenEstimate::default(),
        };

        self.user.report(Event::Notice(Notice::RoleAsked {
            role: question.role.word(),
            about: question.about.to_owned(),
        }));
        let mut usage = StepUsage {
            model: name,
            ..StepUsage::default()
        };

        let answered = self.ask_until_usable(&model, question, read, &mut usage);
        if answered.is_err() && usage.calls > 0 {
            discarded::add(self.project, &self.change.id, &usage)?;
        }
        let (value, text) = answered?;
        self.answer = Some((text, usage.clone()));
        Ok((value, usage))
    }

    /// Adds to `usage`, also if no answer is usable.
    fn ask_until_usable<T>(
        &mut self,
        model: &MeteredModel<'_>,
        question: RoleQuestion<'_>,
        read: ReadAnswer<'_, T>,
        usage: &mut StepUsage,
    ) -> anyhow::Result<(T, String)> {
        let mut request = ModelRequest {
            system: question.system,
            input: question.input,
            message: question.message.clone(),
            max_tokens: None,
        };
        loop {
            let answer = self.answer(model, &request, usage)?;
            // Redact before the answer is parsed and recorded.
            let text = redact(&answer.text).into_owned();
            let mistakes = match read(&text) {
                Ok(value) => return Ok((value, text)),
                Err(mistakes) => mistakes,
            };
            if usage.calls >= MAX_ANSWERS {
                return Err(self.useless(question.role, question.about, &text, &mistakes));
            }

            request.message = repeat_message(&question.message, &text, &mistakes);
            self.user.report(Event::Notice(Notice::AnswerUnusable {
                about: question.about.to_owned(),
                mistakes,
            }));
        }
    }

    /// Fails if the answer is incomplete; its cost has been counted then.
    fn answer(
        &mut self,
        model: &MeteredModel<'_>,
        request: &ModelRequest,
        usage: &mut StepUsage,
    ) -> anyhow::Result<ModelAnswer> {
        let answer = ask_one(model, request, &RefCell::new(&mut *self.user))?;
        usage.calls += 1;
        usage.tokens_in += answer.usage.input;
        usage.tokens_out += answer.usage.output;
        let price = model.chosen.price.as_ref();
        report_unknown(&model.chosen.name, price, answer.usage, self.user);
        let (sum, dollars) = match price::cost(price, answer.usage) {
            Ok(cost) => (&mut usage.cost, cost),
            // Not all of the price is known, so the amount counts only toward the limit.
            Err(_) => (&mut usage.spent, price::charge(price, answer.usage)),
        };

        if price.is_some() && answer.usage.is_known() {
            *sum = Some(sum.unwrap_or_default() + dollars);
        }

        let Err(error) = answer.clone().into_complete() else {
            return Ok(answer);
        };
        let location = error.partial().map(|text| self.keep(text));
        let location = location.unwrap_or_default();
        anyhow::ensure!(
            answer.finish != Finish::Length,
            "the model's answer is cut off and was not taken{location}; raise `max_tokens` of the model"
        );
        Err(error).with_context(|| format!("the model's answer was not taken{location}"))
    }

    /// Saves the last answer for the user, and returns the error.
    fn useless(&self, role: Role, about: &str, text: &str, mistakes: &[String]) -> anyhow::Error {
        let location = self.keep(text);
        anyhow::anyhow!(
            "the {}'s answer is not {about}, so nothing was recorded{location}:\n{}",
            role.word(),
            mistakes.join("\n")
        )
    }

    /// Returns a phrase that names the path, or an empty string if the file cannot be written.
    pub(super) fn keep(&self, text: &str) -> String {
        let path = change_dir(self.project, &self.change.id).join("answer.md");
        match write_atomic(&path, text.as_bytes()) {
            Ok(()) => format!(" (it is kept in `{}`)", path.display()),
            Err(_) => String::new(),
        }
    }

    /// The change and the project as they are now, redacted.
    pub(super) fn material(&self) -> anyhow::Result<String> {
        let repository = &self.project.repository;
        let leaves = repository.leaves(files_now(self.project)?)?;
        let paths: Vec<String> = leaves
            .iter()
            .filter_map(|leaf| String::from_utf8(leaf.path.clone()).ok())
            .collect();
        let description = self.change.state.description.as_deref();
        let mut text = format!(
            "# Change `{}`\n\n## 1. Description\n\n{}\n\n## 2. Project Structure\n",
            self.change.id,
            description.unwrap_or("(none)").trim()
        );
        write_block(&mut text, "", &input::structure(&paths));
        text.push_str("\n## 3. Files of the Project\n\n");

        let included = select_paths(&self.change.documents, &paths);
        let mut remaining = MAX_INPUT_FILES;
        for leaf in leaves.iter().filter(|leaf| leaf.is_file()) {
            if let Some(path) = included
                .iter()
                .find(|path| path.as_bytes() == leaf.path.as_slice())
            {
                let bytes = repository.blob(BlobId::of(leaf.id))?;
                push_file(&mut text, path, &bytes, &mut remaining);
            }
        }

        text.push_str("## 4. Documents of the Change\n\n");
        for (path, contents) in &self.change.documents.0 {
            push_document(&mut text, path, contents);
        }

        Ok(redact(&text).into_owned())
    }
}

fn repeat_message(message: &str, answer: &str, mistakes: &[String]) -> String {
    let list: String = mistakes
        .iter()
        .map(|mistake| format!("- {mistake}\n"))
        .collect();
    let mut text = format!(
        "{message}\n\nYou have answered this before, and the answer had these mistakes:\n{list}\nYour answer was:\n"
    );
    write_block(&mut text, "markdown", answer.trim_end());
    text.push_str("\nAnswer again, all of it.");
    text
}

pub(super) fn expand_template(prompt: &str, id: &ChangeId, spec: &str) -> String {
    prompt
        .replace("{{id}}", id.as_str())
        .replace("{{spec}}", spec)
}

/// In bytes. A larger file is only mentioned.
const MAX_INPUT_FILE: usize = 64 * 1024;

/// In bytes, for all project files together.
const MAX_INPUT_FILES: usize = 400 * 1024;

fn select_paths(documents: &Documents, paths: &[String]) -> Vec<String> {
    let files = proposal::read(documents.text(proposal::FILE)).files;
    let is_included = |path: &&String| {
        spec::id_of(path).is_some() || path.as_str() == "README.md" || files.contains(path)
    };
    paths.iter().filter(is_included).cloned().collect()
}

fn push_file(text: &mut String, path: &str, bytes: &[u8], remaining: &mut usize) {
    text.push_str(&format!("### `{}`\n", sanitize_line(path)));
    match std::str::from_utf8(bytes) {
        Ok(contents) if bytes.len() <= MAX_INPUT_FILE.min(*remaining) => {
            *remaining -= bytes.len();
            write_block(text, language(path), contents);
        }
        Ok(_) => text.push_str(&format!(
            "({}, too large to be shown)\n",
            counted(bytes.len(), "byte")
        )),
        Err(_) => text.push_str(&format!("({}, no text)\n", counted(bytes.len(), "byte"))),
    }

    text.push('\n');
}

pub(super) fn push_document(text: &mut String, path: &str, contents: &str) {
    text.push_str(&format!("### `{path}`\n"));
    write_block(text, "markdown", contents);
    text.push('\n');
}

pub(super) fn render_documents(documents: &Documents) -> String {
    let mut text = String::new();
    for (path, contents) in documents.0.iter().filter(|(path, _)| *path != review::FILE) {
        let (body, _) = review::split(contents);
        push_document(&mut text, path, body.trim_end());
    }

    text
}
