//! The recording in the README: a session at a terminal, played by the real program.
//!
//! `TEDDY_RECORD=1 cargo test --test worlds recording` writes `docs/recording.svg` and
//! `docs/recording.cast`. Without the variable, the test plays the session and compares it with
//! these files. Ids are replaced and times are fixed, so that the same program gives the same
//! files.

mod browse;
mod review;
mod svg;

use std::collections::BTreeMap;
use std::path::PathBuf;

use regex::Regex;

use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

/// Columns and rows.
const SIZE: (u16, u16) = (84, 26);
/// Alternative text.
const TITLE: &str =
    "A terminal: a model changes a program, the change is reviewed, undone, redone and landed";
/// Size limit in bytes.
const MOST: usize = 60 * 1024;
const PROMPT: &str = "\u{1b}[1;32m$\u{1b}[0m ";
/// Keys between two frames.
const BURST: usize = 7;

/// An action of the user. The last field is the time until the next one, in tenths of a second.
enum Beat {
    /// Types a command, then waits for a text and a prompt.
    Command(&'static str, &'static str, u32),
    /// Presses keys, then waits for a text and a prompt.
    Key(&'static str, &'static str, u32),
}

/// A command that waits for keys is followed by them.
const SCENE: &[Beat] = &[
    Beat::Command(
        "teddy start 'greet people by name' greet.sh",
        "(q)uit ›",
        40,
    ),
    Beat::Key("a", "turn 2: what should be done?", 35),
    Beat::Key("/undo\r", "turn 3: what should be done?", 20),
    Beat::Key("/redo\r", "turn 4: what should be done?", 15),
    Beat::Key("/land\r", "turn 5: what should be done?", 25),
    Beat::Key("/quit\r", "", 5),
    Beat::Command("teddy log", "", 40),
];

/// The screen from a point in time on.
pub struct Frame {
    /// In tenths of a second.
    pub at: u32,
    pub screen: vt100::Screen,
}

struct Recorder {
    repo: TestRepo,
    /// One terminal for all programs.
    terminal: vt100::Parser,
    frames: Vec<Frame>,
    /// In tenths of a second.
    now: u32,
    /// The replacement of each id.
    ids: BTreeMap<String, String>,
}

impl Recorder {
    fn new(repo: TestRepo) -> Recorder {
        Recorder {
            repo,
            terminal: vt100::Parser::new(SIZE.1, SIZE.0, 0),
            frames: Vec::new(),
            now: 0,
            ids: BTreeMap::new(),
        }
    }

    /// Shows output for a time. Replaces the model's response time and the size of its input, which
    /// depends on the name of the temporary directory.
    fn show(&mut self, bytes: &[u8], tenths: u32) {
        let text = self.without_ids(&String::from_utf8_lossy(bytes));
        let [time, size] =
            [r"\b[0-9]+ s\b", "about [0-9,]+ tokens"].map(|pattern| Regex::new(pattern).unwrap());
        let text = time.replace_all(&text, "4 s");
        let text = size.replace_all(&text, "about 3,600 tokens");
        self.terminal.process(text.as_bytes());
        let screen = self.terminal.screen().clone();
        self.frames.push(Frame {
            at: self.now,
            screen,
        });
        self.now += tenths;
    }

    /// Replaces object ids, which differ by run.
    fn without_ids(&mut self, text: &str) -> String {
        // A color sequence, which ends in a letter, can come before the id.
        let id = Regex::new(r"(^|\x1b\[[0-9;?]*[A-Za-z]|[^0-9A-Za-z])([0-9a-f]{8,40})\b").unwrap();
        let replace = |found: &regex::Captures<'_>| {
            let known = found[2][..8].to_owned();
            let count = self.ids.len() as u32 + 1;
            // Hash the count, so that it looks like an id.
            let made = self.ids.entry(known).or_insert_with(|| {
                let digits = [
                    0x9e37_79b1_u32,
                    0x85eb_ca77,
                    0xc2b2_ae3d,
                    0x27d4_eb2f,
                    0x1656_67b1,
                ];
                digits
                    .iter()
                    .map(|factor| format!("{:08x}", factor.wrapping_mul(count)))
                    .collect()
            });
            format!("{}{}", &found[1], &made[..found[2].len()])
        };
        id.replace_all(text, replace).into_owned()
    }

    /// Types a command after the prompt.
    fn type_in(&mut self, command: &str) {
        self.show(PROMPT.as_bytes(), 6);
        let letters: Vec<char> = command.chars().collect();
        for burst in letters.chunks(BURST) {
            let burst: String = burst.iter().collect();
            self.show(burst.as_bytes(), 3);
        }
        self.terminal.process(b"\r\n");
    }

    fn play(mut self) -> Vec<Frame> {
        let mut running: Option<(Screen, usize)> = None;
        for beat in SCENE {
            let (awaited, tenths) = match beat {
                Beat::Command(command, awaited, tenths) => {
                    self.finish(&mut running, 4);
                    self.type_in(command);
                    let words = shlex::split(command).unwrap();
                    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
                    running = Some((
                        Screen::open_with(&self.repo, SIZE, (&words, &[("GIT_EDITOR", "true")])),
                        0,
                    ));
                    (awaited, *tenths)
                }
                Beat::Key(key, awaited, tenths) => {
                    running.as_mut().unwrap().0.press(key);
                    (awaited, *tenths)
                }
            };
            if awaited.is_empty() {
                self.finish(&mut running, tenths);
            } else {
                let (program, seen) = running.as_mut().unwrap();
                program.wait_for(awaited);
                while !program.shown().trim_end().ends_with('›') {
                    program.read();
                }
                program.settled();
                let bytes = program.bytes()[*seen..].to_vec();
                *seen += bytes.len();
                self.show(&bytes, tenths);
            }
        }
        self.finish(&mut running, 0);
        self.frames
    }

    /// Waits for the running program to exit, and shows the rest of its output.
    fn finish(&mut self, running: &mut Option<(Screen, usize)>, tenths: u32) {
        if let Some((mut program, seen)) = running.take() {
            assert_eq!(program.end(), 0, "{}", program.shown());
            let rest = program.bytes()[seen..].to_vec();
            self.show(&rest, tenths);
        }
    }
}

/// Greets everybody the same way. Its model has one answer.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("greet.sh", "#!/bin/sh\necho \"Hello!\"\n");
    repo.commit("Say hello");
    let check = "test \"$(sh greet.sh Ada)\" = 'Hello, Ada!'\n";
    let actions = [
        edit(
            "greet.sh",
            "echo \"Hello!\"",
            "echo \"Hello, ${1:-world}!\"",
        ),
        create("test.sh", check),
        execute("sh test.sh && echo passed"),
    ];
    let reason =
        "It says the same to everybody. Now it takes a name, and greets the world without.";
    let answer = plan("Greet by name", &actions);
    repo.reply(&answer.replace("Greet by name, because it is wanted.", reason));
    let answers = repo.beside("answers");
    repo.configure(&format!(
        "model: recorded\nmodels: {{ recorded: {{ kind: replay, path: {} }} }}\n",
        answers.display()
    ));
    repo
}

/// Returns the frames in asciinema's format, version 2.
fn cast(frames: &[Frame]) -> String {
    let (width, height) = SIZE;
    let title = "A change by a model, reviewed, undone, redone and landed with TeDDy";
    let header = serde_json::json!({
        "version": 2, "width": width, "height": height, "title": title,
    });
    let mut lines = vec![header.to_string()];
    let mut before = vt100::Parser::new(height, width, 0).screen().clone();
    for frame in frames {
        let bytes = frame.screen.state_diff(&before);
        let seconds = f64::from(frame.at) / 10.0;
        let event = serde_json::json!([seconds, "o", String::from_utf8(bytes).unwrap()]);
        lines.push(event.to_string());
        before = frame.screen.clone();
    }
    lines.join("\n") + "\n"
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name)
}

#[test]
fn the_recording_shows_what_the_program_prints() {
    let frames = Recorder::new(project()).play();
    let files = [
        ("recording.svg", svg::draw(&frames, SIZE, TITLE)),
        ("recording.cast", cast(&frames)),
    ];
    assert!(files[0].1.len() < MOST, "{} bytes", files[0].1.len());
    let last = frames.last().unwrap();
    for (name, text) in files {
        keep(name, &text, &last.screen);
    }
}

/// Compares a file with the stored one, or stores it.
fn keep(name: &str, text: &str, shown: &vt100::Screen) {
    if teddy::host::env::is_set("TEDDY_RECORD") {
        std::fs::write(path(name), text).unwrap();
        return;
    }

    let kept = std::fs::read_to_string(path(name)).unwrap_or_default();
    let other = kept.lines().zip(text.lines()).find(|(a, b)| a != b);
    let (was, is) = other.unwrap_or_default();
    assert!(
        kept == text,
        "docs/{name} is not what the program prints today:\nwas {was}\nis  {is}\n\
         the last frame is now:\n{}\n\n\
         write it anew with `TEDDY_RECORD=1 cargo test --test worlds recording`, and look at it",
        shown.contents()
    );
}
