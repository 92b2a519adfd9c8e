//! Choosing the model of a turn.

use std::rc::Rc;

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
        let settings = match self.settings.models.get(name) {
            Some(entry) => Settings::from_config(name, entry)?,
            None => Settings::from_spec(name)?,
        };
        let outside = self.outside(tip, &settings)?;
        Ok(Chosen { price: settings.price, model: open(name, &settings, &outside)? })
    }

    /// Returns what models need of the world.
    fn outside(&self, tip: &Turn, settings: &Settings) -> anyhow::Result<Outside> {
        let keys = self.settings.models.values().filter_map(|model| model.api_key_env.clone());
        let mut outside = Outside::default();
        outside.keys.extend(keys);
        outside.stopped = Rc::new(interrupt::requested);
        if settings.kind == Kind::Replay {
            outside.replayed = self.answers(tip)?;
            let recorded = self.recorded(settings)?;
            outside.recorded = Rc::new(move |_| recorded.clone());
        }
        Ok(outside)
    }

    /// Returns how many answers the session has had, so that a replay goes on where it was.
    fn answers(&self, tip: &Turn) -> anyhow::Result<usize> {
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
