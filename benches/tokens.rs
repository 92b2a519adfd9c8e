//! Benchmarks token counts against tiktoken-rs: the first count in a process, then several kinds of
//! text.
//!
//! `cargo bench --bench tokens` prints one line per case and fails if one exceeds its budget.
#![allow(clippy::print_stdout, reason = "a bench reports on stdout")]
#![allow(clippy::unwrap_used, reason = "a bench fails where it must")]

use std::path::Path;
use std::time::{Duration, Instant};

use teddy::model::token::count;
use tiktoken_rs::o200k_base_singleton;

/// Budget for the first count.
const FIRST: Duration = Duration::from_millis(2);
/// Required speedup over tiktoken-rs.
const FASTER: f64 = 2.0;
// Approximate, in bytes.
const LENGTH: usize = 4_000_000;

fn main() {
    let mut missed = !first();
    for (name, text) in texts() {
        missed |= !measure(name, &text);
    }
    assert!(!missed, "budgets were missed");
}

/// Measures the first count, for which tiktoken-rs must load its vocabulary.
fn first() -> bool {
    let text = "the first words of a process";
    let (ours, theirs) = (time(|| count(text)), time(|| reference(text)));
    let kept = ours.1 <= FIRST;
    report("first count", [ours.1, theirs.1], kept);
    kept && ours.0 == theirs.0
}

/// Measures the fastest of several runs. Returns `false` below the required speedup.
fn measure(name: &str, text: &str) -> bool {
    let ours = (0..5).map(|_| time(|| count(text))).min_by_key(|run| run.1);
    let theirs = (0..2)
        .map(|_| time(|| reference(text)))
        .min_by_key(|run| run.1);
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    assert_eq!(ours.0, theirs.0, "{name} is counted differently");

    let kept = theirs.1.as_secs_f64() >= FASTER * ours.1.as_secs_f64();
    let speed = text.len() as f64 / 1e6 / ours.1.as_secs_f64();
    report(
        &format!("{name}, {speed:.0} MB/s"),
        [ours.1, theirs.1],
        kept,
    );
    kept
}

fn report(name: &str, [ours, theirs]: [Duration; 2], kept: bool) {
    println!(
        "{name:24} {:8.2} ms  {:8.2} ms by tiktoken-rs  {:5.1} times as fast  {}",
        ours.as_secs_f64() * 1e3,
        theirs.as_secs_f64() * 1e3,
        theirs.as_secs_f64() / ours.as_secs_f64(),
        if kept { "ok" } else { "over budget" }
    );
}

fn time(count: impl Fn() -> usize) -> (usize, Duration) {
    let start = Instant::now();
    let counted = count();
    (counted, start.elapsed())
}

fn reference(text: &str) -> usize {
    o200k_base_singleton().encode_ordinary(text).len()
}

fn texts() -> [(&'static str, String); 4] {
    let numbers = std::iter::successors(Some(1_u64), |n| {
        Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
    });
    let numbers = numbers.map(|number| (number >> 33) as u32).take(LENGTH / 4);
    let letter = |n: u32| char::from(b"ABCDEFGHijklmnop0123456789+/wxyz"[n as usize % 32]);
    let ideograph = |n: u32| match n % 13 {
        0 => '，',
        _ => char::from_u32(0x4e00 + n % 0x51a0).unwrap(),
    };
    [
        ("code", project("src", "rs")),
        ("Markdown", project("docs", "md")),
        ("base64", numbers.clone().map(letter).collect()),
        ("ideographs", numbers.map(ideograph).collect()),
    ]
}

/// Returns the project's own files of a kind, repeated up to the length.
fn project(folder: &str, kind: &str) -> String {
    let mut text = String::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
        kind,
        &mut text,
    );
    text.repeat(LENGTH / text.len() + 1)
}

fn collect(folder: &Path, kind: &str, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, kind, text);
        } else if path.extension().is_some_and(|end| end == kind) {
            *text += &std::fs::read_to_string(&path).unwrap();
        }
    }
}
