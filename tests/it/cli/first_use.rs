//! First use, from installation to a landed change: with an agent program, a server on this
//! machine, and an API key.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::fake::{Fake, response, stream};
use crate::machine::Machine;
use crate::plans::{conclude, create, execute, plan};
use crate::screen::Screen;

/// Limit for the number of commands that a new user types.
const MAX_COMMANDS: usize = 2;
/// Maximum number of other keys.
const MAX_KEYS: usize = 3;
/// Time limit, without the time that the user spends.
const MAX_TIME: Duration = Duration::from_secs(120);

/// A plan that changes a file, runs a check and concludes.
fn answer() -> String {
    let actions = [
        create("form.txt", "name:\n"),
        execute("cat form.txt"),
        conclude(&[], "The form is there."),
    ];
    plan("Add a form", &actions)
}

/// A user who types commands.
struct Newcomer {
    machine: Machine,
    variables: Vec<(&'static str, String)>,
    commands: usize,
    keys: usize,
    start: Instant,
}

impl Newcomer {
    fn new(machine: Machine, variables: Vec<(&'static str, String)>) -> Newcomer {
        Newcomer {
            machine,
            variables,
            commands: 0,
            keys: 0,
            start: Instant::now(),
        }
    }

    fn types(&mut self, args: &[&str]) -> Screen {
        self.commands += 1;
        let variables: Vec<_> = self
            .variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.machine.screen(args, &variables)
    }

    fn press(&mut self, screen: &mut Screen, key: &str) {
        self.keys += 1;
        screen.press(key);
    }

    /// Waits for the list and chooses the selected model.
    fn choose(&mut self, screen: &mut Screen) {
        screen.wait_for("manual ");
        screen.settled();
        self.press(screen, "\r");
        screen.wait_for("It answers: ready");
    }

    /// Approves the plan, checks the result, leaves and lands it.
    fn approves_and_lands(mut self, mut screen: Screen) {
        screen.wait_for("(a)pprove /");
        screen.settled();
        self.press(&mut screen, "a");
        screen.wait_for("Updated your files: form.txt (new)");
        screen.wait_for("The form is there.");
        screen.wait_for("turn 2: what should be done?");
        screen.settled();
        self.press(&mut screen, "\x04");
        assert_eq!(screen.end(), 0, "{}", screen.shown());

        let mut screen = self.types(&["land", "-m", "Add a form"]);
        assert_eq!(screen.end(), 0, "{}", screen.shown());
        let repo = &self.machine.repo;
        assert_eq!(repo.git(&["show", "HEAD:form.txt"]), "name:");
        assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Add a form");
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        assert!(self.commands <= MAX_COMMANDS, "{} commands", self.commands);
        assert!(self.keys <= MAX_KEYS, "{} keys", self.keys);
        assert!(
            self.start.elapsed() <= MAX_TIME,
            "{:?}",
            self.start.elapsed()
        );
    }
}

fn models(id: &str) -> String {
    let body = json!({ "object": "list", "data": [{ "id": id }] }).to_string();
    response("200 OK", "content-type: application/json\r\n", &body)
}

#[test]
fn with_a_program_two_commands_lead_to_a_landed_change() {
    let machine = Machine::new();
    let plan = machine.repo.beside("plan.md");
    std::fs::write(&plan, answer()).unwrap();
    // `setup` makes the first call, to try the model.
    let script = format!(
        "cat > /dev/null\nif [ -e {seen} ]; then cat {plan}; else : > {seen}; echo ready; fi",
        seen = machine.repo.beside("seen").display(),
        plan = plan.display()
    );
    let mut newcomer = Newcomer::new(machine.model("claude", "2.1.0", &script), Vec::new());
    let mut screen = newcomer.types(&["start", "add a form"]);
    newcomer.choose(&mut screen);
    newcomer.approves_and_lands(screen);
}

#[test]
fn with_a_server_on_this_machine_two_commands_lead_to_a_landed_change() {
    let fake = Fake::answering(&[
        models("qwen3-coder:30b"),
        stream("ready", "stop", (10, 1)),
        stream(&answer(), "stop", (10, 10)),
    ]);
    let mut newcomer = Newcomer::new(Machine::new().server(&fake), Vec::new());
    let mut screen = newcomer.types(&["start", "add a form"]);
    newcomer.choose(&mut screen);
    newcomer.approves_and_lands(screen);
}

#[test]
fn with_a_key_two_commands_lead_to_a_landed_change() {
    let fake = Fake::answering(&[
        models("qwen3-coder:30b"),
        stream("ready", "stop", (10, 1)),
        stream(&answer(), "stop", (10, 10)),
    ]);
    let variables = vec![
        ("OPENAI_API_KEY", "sk-abcdef123456".to_owned()),
        ("OPENAI_BASE_URL", format!("{}/v1", fake.origin)),
    ];
    let mut newcomer = Newcomer::new(Machine::new(), variables);
    let mut screen = newcomer.types(&["start", "add a form"]);
    newcomer.choose(&mut screen);
    newcomer.approves_and_lands(screen);
}
