//! Every prompt of the loop, on a narrow terminal: suspended, and stopped from outside.

use rustix::process::Signal;

use crate::plans::{chat, create, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

const SIZE: (u16, u16) = (40, 40);

/// Where the answer to a message comes from.
#[derive(Clone, Copy)]
enum Answer {
    Prose,
    Plan,
    Question,
    Failure,
    Chat,
}

/// A prompt, and the way to it: keys, each with the text that they lead to.
type Way = (Answer, &'static [(&'static str, &'static str)]);

const WAYS: [Way; 9] = [
    (Answer::Plan, &[]),
    (Answer::Prose, &[("go\r", "or enter to ask")]),
    (Answer::Question, &[("go\r", "Your answer:")]),
    (Answer::Failure, &[("go\r", "/model chooses another")]),
    (
        Answer::Plan,
        &[("!echo hi\r", "with your next message, enter")],
    ),
    (Answer::Plan, &[("ls\r", "Send it to the model?")]),
    (Answer::Chat, &[("go\r", "(q)uit ›")]),
    (
        Answer::Plan,
        &[("go\r", "(q)uit ›"), ("s", "enter declines with it")],
    ),
    (
        Answer::Plan,
        &[
            ("go\r", "(q)uit ›"),
            ("c", "c comment"),
            ("c", "Your comment:"),
        ],
    ),
];

fn project(answer: Answer) -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    match answer {
        Answer::Prose => repo.reply("Shall I go on?"),
        Answer::Plan => repo.reply(&plan("Make b", &[create("b.txt", "b\n")])),
        Answer::Question => repo.reply(&plan("Ask", &[chat("Red or blue?")])),
        Answer::Failure => {
            repo.configure("model: m\nmodels:\n  m: { kind: command, run: [\"false\"] }\n")
        }
        Answer::Chat => repo.configure("model: manual\n"),
    };
    repo
}

/// Waits for a prompt, and goes on to the one that is meant.
fn follow(screen: &mut Screen, (_, way): Way) {
    screen.wait_for("what should be done?");
    for (keys, text) in way {
        screen.settled();
        screen.press(keys);
        screen.wait_for(text);
    }
    while !screen.settled().trim_end().ends_with('›') {
        screen.read();
    }
}

/// Tests every prompt at the same time: the tests mostly wait.
fn each_way(test: impl Fn(Way) + Sync) {
    std::thread::scope(|scope| {
        for way in WAYS {
            let test = &test;
            scope.spawn(move || test(way));
        }
    });
}

#[test]
fn a_stop_from_outside_ends_every_prompt() {
    each_way(|way| {
        for signal in [Signal::TERM, Signal::HUP] {
            let repo = project(way.0);
            let mut screen = Screen::open(&repo, SIZE, &["resume"]);
            follow(&mut screen, way);
            screen.signal(signal);
            assert_eq!(
                screen.end(),
                130,
                "{signal:?} {:?}: {}",
                way.1,
                screen.shown()
            );
            assert!(!repo.path().join("b.txt").exists());
            repo.done(&["status"]);
        }
    });
}

#[test]
fn ctrl_z_suspends_every_prompt_and_fg_shows_it_again() {
    each_way(|way| {
        let repo = project(way.0);
        let mut shell = Screen::jobs(&repo, SIZE);
        shell.wait_for("SHELL>");
        shell.press("\"$TEDDY\" resume\r");
        follow(&mut shell, way);
        shell.press("\x1a");
        shell.wait_for("Stopped");
        shell.settled();
        assert!(!shell.is_full() && shell.is_ordinary(), "{:?}", way.1);
        shell.press("clear; fg\r");
        shell.wait_for_prompt("›");
        assert!(!shell.is_ordinary(), "{:?}", way.1);
        // From a prompt within the review, ctrl-c goes back first.
        while !shell.settled().trim_end().ends_with("SHELL>") {
            shell.press("\x03");
        }
        assert!(shell.is_ordinary(), "{:?}", way.1);
        shell.press("exit\r");
        shell.end();
        assert!(!repo.path().join("b.txt").exists());
    });
}
