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
    pub(super) fn find(begun: &Value, wanted: &[&str]) -> Option<AgentMode> {
        wanted
            .iter()
            .find_map(|mode| find_in_modes(begun, mode).or_else(|| find_in_options(begun, mode)))
    }
}

fn find_in_modes(begun: &Value, mode: &str) -> Option<AgentMode> {
    if text_at(begun, "/modes/currentModeId") == mode {
        return Some(AgentMode::Current);
    }
    let modes = begun.pointer("/modes/availableModes")?.as_array()?;
    let is_there = modes.iter().any(|known| text_at(known, "/id") == mode);
    is_there.then(|| AgentMode::Plain(mode.to_owned()))
}

fn find_in_options(begun: &Value, mode: &str) -> Option<AgentMode> {
    let options = begun.get("configOptions")?.as_array()?;
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
    fn check(begun: &Value, wanted: &[&str], expected: Option<AgentMode>) {
        assert_eq!(AgentMode::find(begun, wanted), expected);
    }

    #[test]
    fn the_first_mode_that_it_has_is_taken() {
        let begun = json!({ "modes": { "currentModeId": "ask", "availableModes": [{ "id": "ask" }, { "id": "all" }] } });
        check(
            &begun,
            &["full", "all"],
            Some(AgentMode::Plain("all".into())),
        );
        check(&begun, &["ask"], Some(AgentMode::Current));
        check(&begun, &["full"], None);
        check(&Value::Null, &["full"], None);
    }

    #[test]
    fn a_mode_may_be_an_option() {
        let begun = json!({ "configOptions": [
            { "id": "model", "options": [{ "value": "all" }] },
            { "id": "m", "category": "mode", "currentValue": "ask", "options": [{ "value": "all" }] },
        ] });
        let all = AgentMode::Option {
            option: "m".into(),
            mode: "all".into(),
        };
        check(&begun, &["all"], Some(all));
        check(&begun, &["ask"], Some(AgentMode::Current));
    }
}
