//! Finds an agent's modes, which agents list either as `modes` or as a config option.

use serde_json::Value;

use super::update::text_at;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentMode {
    /// The mode is already set.
    Current,
    /// To be set with `session/set_mode`.
    Plain(String),
    /// To be set with `session/set_config_option`.
    Option {
        /// Id of the option.
        option: String,
        mode: String,
    },
}

impl AgentMode {
    /// Returns how to set the first of the modes that the agent has. `begun` is its answer to
    /// `session/new`.
    pub(super) fn find(session: &Value, preferred: &[&str]) -> Option<AgentMode> {
        preferred.iter().find_map(|mode| {
            find_in_modes(session, mode).or_else(|| find_in_options(session, mode))
        })
    }
}

fn find_in_modes(session: &Value, mode: &str) -> Option<AgentMode> {
    if text_at(session, "/modes/currentModeId") == mode {
        return Some(AgentMode::Current);
    }
    let modes = session.pointer("/modes/availableModes")?.as_array()?;
    let is_there = modes
        .iter()
        .any(|available| text_at(available, "/id") == mode);
    is_there.then(|| AgentMode::Plain(mode.to_owned()))
}

fn find_in_options(session: &Value, mode: &str) -> Option<AgentMode> {
    let options = session.get("configOptions")?.as_array()?;
    let of_modes = |option: &&Value| {
        text_at(option, "/category") == "mode" || text_at(option, "/id") == "mode"
    };
    let option = options.iter().find(of_modes)?;
    if text_at(option, "/currentValue") == mode {
        return Some(AgentMode::Current);
    }

    let values = option.get("options")?.as_array()?;
    let is_there = values.iter().any(|value| text_at(value, "/value") == mode);
    is_there.then(|| AgentMode::Option {
        option: text_at(option, "/id").to_owned(),
        mode: mode.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(session: &Value, preferred: &[&str], expected: Option<AgentMode>) {
        assert_eq!(AgentMode::find(session, preferred), expected);
    }

    #[test]
    fn the_first_mode_that_it_has_is_taken() {
        let session = json!({ "modes": { "currentModeId": "ask", "availableModes": [{ "id": "ask" }, { "id": "all" }] } });
        check(
            &session,
            &["full", "all"],
            Some(AgentMode::Plain("all".into())),
        );
        check(&session, &["ask"], Some(AgentMode::Current));
        check(&session, &["full"], None);
        check(&Value::Null, &["full"], None);
    }

    #[test]
    fn a_mode_may_be_an_option() {
        let session = json!({ "configOptions": [
            { "id": "model", "options": [{ "value": "all" }] },
            { "id": "m", "category": "mode", "currentValue": "ask", "options": [{ "value": "all" }] },
        ] });
        let all = AgentMode::Option {
            option: "m".into(),
            mode: "all".into(),
        };
        check(&session, &["all"], Some(all));
        check(&session, &["ask"], Some(AgentMode::Current));
    }
}
