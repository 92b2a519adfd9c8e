//! Choosing the model of a turn.

use std::rc::Rc;

use crate::change::id::ChangeId;
use crate::config::settings::Price;
use crate::host::interrupt;
use crate::model::Model;
use crate::model::open::open;
use crate::model::outside::Outside;
use crate::model::settings::{Kind, Settings};
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::plan::Wish;
use crate::workflow::project::Project;

/// A model and what it costs.
pub struct Chosen {
    /// The model.
    pub model: Box<dyn Model>,
    /// Its price, where the configuration says.
    pub price: Option<Price>,
}

/// No model is configured.
#[derive(Debug, thiserror::Error)]
#[error("no model is configured")]
pub struct NoModel;

impl Project {
    /// Returns the model that a wish or the configuration names.
    ///
    /// # Errors
    /// [`NoModel`], or where it lacks a key or a setting.
    pub fn choose(&self, tip: &Turn, wish: &Wish) -> anyhow::Result<Chosen> {
        let name = wish.model.clone().or_else(|| self.settings.model.clone()).ok_or(NoModel)?;
        self.model(tip, &name)
    }

    /// Opens a model by its name in the configuration, or by `kind:id`.
    ///
    /// # Errors
    /// As for [`Project::choose`].
    pub fn model(&self, tip: &Turn, name: &str) -> anyhow::Result<Chosen> {
        let settings = self.described(name)?;
        let answered = if settings.kind == Kind::Replay { self.answers(tip, name)? } else { 0 };
        self.open_model(name, &settings, answered)
    }

    /// Opens a model outside of a session: by its name in the configuration, or by `kind:id`; `answered` counts the
    /// answers that it gave before, so that a replay goes on where it was.
    ///
    /// # Errors
    /// As for [`Project::choose`].
    pub fn model_after(&self, name: &str, answered: usize) -> anyhow::Result<Chosen> {
        let settings = self.described(name)?;
        self.open_model(name, &settings, answered)
    }

    /// Returns the settings behind a name of the configuration, or `kind:id`.
    fn described(&self, name: &str) -> anyhow::Result<Settings> {
        Ok(match self.settings.models.get(name) {
            Some(entry) => Settings::from_config(name, entry)?,
            None => Settings::from_spec(name)?,
        })
    }

    /// Opens the model that settings describe.
    fn open_model(&self, name: &str, settings: &Settings, answered: usize) -> anyhow::Result<Chosen> {
        let outside = self.outside(settings, answered)?;
        Ok(Chosen { price: settings.price, model: open(name, settings, &outside)? })
    }

    /// Returns what models need of the world.
    fn outside(&self, settings: &Settings, answered: usize) -> anyhow::Result<Outside> {
        let keys = self.settings.models.values().filter_map(|model| model.api_key_env.clone());
        let mut outside = Outside::default();
        outside.keys.extend(keys);
        outside.stopped = Rc::new(interrupt::requested);
        if settings.kind == Kind::Replay {
            outside.replayed = answered;
            let recorded = self.recorded(settings)?;
            outside.recorded = Rc::new(move |_| recorded.clone());
        }
        Ok(outside)
    }

    /// Returns how many answers the session has had, so that a replay goes on where it was; a change's session goes on
    /// behind the answers that the model gave for its documents.
    fn answers(&self, tip: &Turn, name: &str) -> anyhow::Result<usize> {
        if let Some(id) = ChangeId::of_session(&tip.session) {
            return self.answers_in_change(&id, name);
        }
        let mut count = 0;
        for turn in self.store().history(tip.clone()) {
            count += usize::from(turn?.meta.model.is_some());
        }
        Ok(count)
    }

    /// Returns the answers of the session that a replay names, if its path is the name of one.
    fn recorded(&self, settings: &Settings) -> anyhow::Result<Option<Vec<String>>> {
        let named = settings.path.as_ref().and_then(|path| SessionName::from_ref(path.to_str()?).ok());
        let Some(name) = named.filter(|name| !self.repository.workdir().join(name.as_str()).exists()) else { return Ok(None) };
        match self.repository.reference(&name.reference())? {
            Some(_) => self.answers_of(&name).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the answers of a recorded session, oldest first.
    fn answers_of(&self, session: &SessionName) -> anyhow::Result<Vec<String>> {
        let mut texts = Vec::new();
        for turn in self.store().history(self.store().tip(session)?) {
            let turn = turn?;
            let answer = match turn.text(&self.repository, artifact::REPLY)? {
                Some(reply) => Some(reply),
                None => turn.text(&self.repository, artifact::PLAN)?,
            };
            texts.extend(answer);
        }
        texts.reverse();
        Ok(texts)
    }
}
