//! Pages and searches: each page fetched once in a turn.

use std::collections::BTreeMap;

use crate::host::env;
use crate::host::search::{Engine, search};
use crate::host::web::{Rules, fetch};
use crate::workflow::project::Project;

/// The pages of a turn.
pub struct Pages {
    /// What may be fetched.
    rules: Rules,
    /// Where searches go.
    engine: Engine,
    /// What was fetched already.
    seen: BTreeMap<String, Result<String, String>>,
}

impl Pages {
    /// Returns a page as readable text, or why not.
    ///
    /// # Errors
    /// Why the page cannot be had, in one sentence.
    pub fn get(&mut self, url: &str) -> Result<String, String> {
        if let Some(seen) = self.seen.get(url) {
            return seen.clone();
        }
        let page = fetch(url, &self.rules).map(|page| page.text).map_err(|error| error.to_string());
        self.seen.insert(url.to_owned(), page.clone());
        page
    }

    /// Returns the hits of a query as text, or why there are none.
    ///
    /// # Errors
    /// Why the search failed, in one sentence.
    pub fn search(&self, query: &str) -> Result<String, String> {
        let hits = search(&self.engine, query).map_err(|error| error.to_string())?;
        let shown = hits.iter().map(|hit| format!("- {}\n  {}\n  {}\n", hit.title, hit.url, hit.snippet));
        let text: String = shown.collect();
        Ok(if text.is_empty() { "No result.\n".to_owned() } else { text })
    }
}

impl Project {
    /// Returns the pages of a new turn, none fetched yet.
    pub fn pages(&self) -> Pages {
        let rules = Rules { allowed_hosts: self.settings.web.allow_hosts.clone(), ..Rules::default() };
        Pages { rules, engine: self.engine(), seen: BTreeMap::new() }
    }

    /// Returns the configured search engine.
    fn engine(&self) -> Engine {
        let research = &self.settings.research;
        let key = |usual: &str| research.api_key_env.as_deref().or(Some(usual)).and_then(env::var).unwrap_or_default();
        match research.engine.as_deref() {
            Some("searxng") => Engine::Searxng { base_url: research.base_url.clone().unwrap_or_default() },
            Some("brave") => Engine::Brave { key: key("BRAVE_API_KEY") },
            Some("tavily") => Engine::Tavily { key: key("TAVILY_API_KEY") },
            Some("command") => Engine::Command { run: research.run.clone() },
            _ => Engine::None,
        }
    }
}
