//! The modes of an agent: listed as modes, or as the values of an option.

use serde_json::Value;

use super::update::text;

/// How an agent comes into a mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentMode {
    /// It is in it.
    Current,
    /// By the mode's name.
    Plain(String),
    /// As the value of an option.
    Option {
        /// The option's id.
        option: String,
        /// The value.
        mode: String,
    },
}

impl AgentMode {
    /// Returns how it comes into the first of some modes that it has, by what it tells of a
    /// conversation.
    pub(super) fn find(begun: &Value, wanted: &[&str]) -> Option<AgentMode> {
        wanted
            .iter()
            .find_map(|mode| plain(begun, mode).or_else(|| option(begun, mode)))
    }
}

/// Looks for a mode among the modes.
fn plain(begun: &Value, mode: &str) -> Option<AgentMode> {
    if text(begun, "/modes/currentModeId") == mode {
        return Some(AgentMode::Current);
    }
    let modes = begun.pointer("/modes/availableModes")?.as_array()?;
    let is_there = modes.iter().any(|known| text(known, "/id") == mode);
    is_there.then(|| AgentMode::Plain(mode.to_owned()))
}

/// Looks for a mode among the values of the option for modes.
fn option(begun: &Value, mode: &str) -> Option<AgentMode> {
    let options = begun.get("configOptions")?.as_array()?;
    let of_modes =
        |option: &&Value| text(option, "/category") == "mode" || text(option, "/id") == "mode";
    let option = options.iter().find(of_modes)?;
    if text(option, "/currentValue") == mode {
        return Some(AgentMode::Current);
    }

    let values = option.get("options")?.as_array()?;
    let is_there = values.iter().any(|value| text(value, "/value") == mode);
    is_there.then(|| AgentMode::Option {
        option: text(option, "/id").to_owned(),
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
