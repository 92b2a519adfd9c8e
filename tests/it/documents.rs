//! What the documents show to be copied is taken by the program as it stands.

use std::rc::Rc;

use teddy::config::settings::Settings;
use teddy::model::open::open;
use teddy::model::outside::Outside;
use teddy::model::settings::Settings as ModelSettings;

/// Reads a document of the project.
fn document(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Returns the code blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    text.split(&opening)
        .skip(1)
        .map(|rest| rest.split_once("\n```").unwrap().0.to_owned())
        .collect()
}

/// Returns the models of a configuration, each opened with a key in every variable; the one in use
/// must be among them.
fn models(yaml: &str) -> Vec<String> {
    let settings: Settings =
        serde_yaml::from_str(yaml).unwrap_or_else(|error| panic!("{error} in\n{yaml}"));
    let outside = Outside {
        variable: Rc::new(|name| name.ends_with("_KEY").then(|| "hunter2-hunter2".to_owned())),
        ..Outside::default()
    };
    for (name, entry) in &settings.models {
        let model = ModelSettings::from_config(name, entry)
            .and_then(|settings| open(name, &settings, &outside));
        assert!(model.is_ok(), "{name}: {:?} in\n{yaml}", model.err());
    }
    let used = settings
        .model
        .unwrap_or_else(|| panic!("no model is in use in\n{yaml}"));
    assert!(
        settings.models.contains_key(&used),
        "`{used}` is none of the models in\n{yaml}"
    );
    settings.models.into_keys().collect()
}

#[test]
fn every_set_up_of_a_model_can_be_copied() {
    let set_up: Vec<String> = blocks(&document("docs/models.md"), "yaml")
        .iter()
        .flat_map(|block| models(block))
        .collect();
    assert_eq!(
        set_up,
        [
            "gpt", "sonnet", "router", "gemini", "local", "local", "claude", "codex"
        ]
    );
}

#[test]
fn every_example_of_a_configuration_can_be_copied() {
    let examples = blocks(&document("docs/formats/config.md"), "yaml");
    assert_eq!(
        examples
            .iter()
            .map(|example| models(example).len())
            .collect::<Vec<_>>(),
        [3]
    );
}

#[test]
fn what_init_writes_can_be_uncommented() {
    let text = document("prompts/config.yaml");
    let uncommented = |line: &str| {
        line.strip_prefix("# ")
            .filter(|rest| rest.starts_with(|c: char| c.is_lowercase() || c == ' '))
            .map(str::to_owned)
    };
    let own: Vec<String> = text
        .lines()
        .skip_while(|line| !line.contains("model:"))
        .take_while(|line| !line.is_empty())
        .filter_map(uncommented)
        .collect();
    let own: String = own
        .iter()
        .map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned() + "\n")
        .collect();
    assert_eq!(models(&own), ["claude", "gpt", "local", "sonnet"]);
    let theirs: String = text
        .lines()
        .skip_while(|line| !line.is_empty())
        .filter_map(uncommented)
        .map(|line| line + "\n")
        .collect();
    serde_yaml::from_str::<Settings>(&theirs)
        .unwrap_or_else(|error| panic!("{error} in\n{theirs}"));
}

#[test]
fn every_setting_of_a_model_is_in_the_table() {
    let error = serde_yaml::from_str::<teddy::config::settings::ModelSettings>("zz: 1")
        .unwrap_err()
        .to_string();
    let known: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
    assert!(known.len() > 15, "{error}");
    let table = document("docs/models.md");
    let missing: Vec<&&str> = known
        .iter()
        .filter(|name| !table.contains(&format!("| `{name}` |")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
