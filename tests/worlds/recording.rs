//! The recording in the README: a session at a terminal, played by the real program.
//!
//! `TEDDY_RECORD=1 cargo test --test it recording` writes `docs/recording.svg` and
//! `docs/recording.cast` anew. Otherwise the session is played and compared with them: the picture
//! shows what the program prints today. Ids are replaced by others, and the times are those of a
//! patient typist, so that the same program gives the same files.

mod browse;
mod svg;

use std::collections::BTreeMap;
use std::path::PathBuf;

use regex::Regex;

use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

/// The columns and rows of the terminal.
const SIZE: (u16, u16) = (84, 26);
/// What the picture shows, for those who do not see it.
const TITLE: &str =
    "A terminal: a model changes a program, the change is reviewed, undone, redone and landed";
/// The most bytes of the picture.
const MOST: usize = 60 * 1024;
/// What stands before a command.
const PROMPT: &str = "\u{1b}[1;32m$\u{1b}[0m ";
/// How many keys are typed between two frames.
const BURST: usize = 7;

/// Something that the person does, and how long they look at what comes of it.
enum Beat {
    /// Types a command, waits for a text and a prompt, and looks, in tenths of a second.
    Command(&'static str, &'static str, u32),
    /// Presses keys, waits for a text and a prompt, and looks.
    Key(&'static str, &'static str, u32),
}

/// What is played. A command whose program waits for keys is followed by them.
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

/// What the terminal shows from a moment on.
pub struct Frame {
    /// When, in tenths of a second.
    pub at: u32,
    /// What it shows.
    pub screen: vt100::Screen,
}

/// A session that is being recorded.
struct Recorder {
    /// The project.
    repo: TestRepo,
    /// The terminal, on which one program follows another.
    terminal: vt100::Parser,
    /// What was seen so far.
    frames: Vec<Frame>,
    /// The time.
    now: u32,
    /// The ids that came up, and those that stand for them.
    ids: BTreeMap<String, String>,
}

impl Recorder {
    /// Starts in a project.
    fn new(repo: TestRepo) -> Recorder {
        Recorder {
            repo,
            terminal: vt100::Parser::new(SIZE.1, SIZE.0, 0),
            frames: Vec::new(),
            now: 0,
            ids: BTreeMap::new(),
        }
    }

    /// Shows bytes for a time. How long the model takes, and the name of the temporary directory in
    /// what it gets, are not what the recording is about.
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

    /// Replaces ids of objects, which differ from run to run, by others that do not.
    fn without_ids(&mut self, text: &str) -> String {
        // A colour before it ends in a letter.
        let id = Regex::new(r"(^|\x1b\[[0-9;?]*[A-Za-z]|[^0-9A-Za-z])([0-9a-f]{8,40})\b").unwrap();
        let replace = |found: &regex::Captures<'_>| {
            let known = found[2][..8].to_owned();
            let count = self.ids.len() as u32 + 1;
            // Digits that look like those of an id.
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

    /// Types a command behind the prompt.
    fn type_in(&mut self, command: &str) {
        self.show(PROMPT.as_bytes(), 6);
        let letters: Vec<char> = command.chars().collect();
        for burst in letters.chunks(BURST) {
            let burst: String = burst.iter().collect();
            self.show(burst.as_bytes(), 3);
        }
        self.terminal.process(b"\r\n");
    }

    /// Plays everything.
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

    /// Waits for the end of what is running, and shows what it still has to say.
    fn finish(&mut self, running: &mut Option<(Screen, usize)>, tenths: u32) {
        if let Some((mut program, seen)) = running.take() {
            assert_eq!(program.end(), 0, "{}", program.shown());
            let rest = program.bytes()[seen..].to_vec();
            self.show(&rest, tenths);
        }
    }
}

/// The project of the recording: it greets everybody alike, and its model has one answer.
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

/// Returns the frames as a recording of asciinema, version 2.
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

/// Returns where a file of the recording is.
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

/// Compares a file with what is kept of it, or keeps it.
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
         write it anew with `TEDDY_RECORD=1 cargo test --test it recording`, and look at it",
        shown.contents()
    );
}
