//! Choosing the model of a turn.

use std::rc::Rc;

use crate::config::settings::Price;
use crate::host::interrupt;
use crate::model::open::open;
use crate::model::outside::Outside;
use crate::model::settings::Settings;
use crate::model::Model;
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
        let outside = self.outside(tip)?;
        Ok(Chosen { price: settings.price, model: open(name, &settings, &outside)? })
    }

    /// Returns what models need of the world.
    fn outside(&self, tip: &Turn) -> anyhow::Result<Outside> {
        let keys = self.settings.models.values().filter_map(|model| model.api_key_env.clone());
        let mut outside = Outside::default();
        outside.keys.extend(keys);
        outside.stopped = Rc::new(interrupt::requested);
        outside.replayed = self.answers(tip)?;
        let recorded: Vec<(String, Vec<String>)> = self.recorded_answers()?;
        outside.recorded = Rc::new(move |path| recorded.iter().find(|(name, _)| name == path).map(|(_, texts)| texts.clone()));
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

    /// Returns the answers of the sessions that a configured replay names.
    fn recorded_answers(&self) -> anyhow::Result<Vec<(String, Vec<String>)>> {
        let named = self.settings.models.values().filter_map(|model| model.path.as_deref()).chain(self.settings.model.as_deref());
        let names = named.filter_map(|text| SessionName::from_ref(text.strip_prefix("replay:").unwrap_or(text)).ok());
        let mut found = Vec::new();
        for name in names {
            if self.repository.reference(&name.reference())?.is_some() {
                found.push((name.to_string(), self.answers_of(&name)?));
            }
        }
        Ok(found)
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
