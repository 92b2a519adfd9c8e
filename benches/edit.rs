//! Benchmarks the FIND matcher on a file of 200,000 lines: 20 ms for a match, 500 ms for an error
//! message.
//!
//! `cargo bench --bench edit` prints one line per case and fails if one exceeds its budget.
#![allow(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::time::{Duration, Instant};

use teddy::text::edit::{FailedPair, apply, explain};

const LINES: usize = 200_000;
/// Budget for an edit that applies.
const FOUND: Duration = Duration::from_millis(20);
/// Budget for explaining an edit that does not.
const EXPLAINED: Duration = Duration::from_millis(500);

struct Bench {
    name: &'static str,
    text: String,
    find: String,
    budget: Duration,
}

fn main() {
    let missed = benches().iter().filter(|bench| !measure(bench)).count();
    assert_eq!(missed, 0, "budgets were missed");
}

fn benches() -> Vec<Bench> {
    let unix = file("\n");
    let dos = file("\r\n");
    let bench = |name, text: &String, find: &str, budget| Bench {
        name,
        text: text.clone(),
        find: find.to_owned(),
        budget,
    };
    let block = "    let value_150000 = compute(150000, \"item\");\n    if value_150000 > 0 {\n";
    vec![
        bench("whole lines", &unix, block, FOUND),
        bench("whole lines, CRLF", &dos, block, FOUND),
        bench(
            "inside a line, CRLF",
            &dos,
            "compute(150000, \"item\")\n",
            FOUND,
        ),
        bench(
            "one line differs",
            &unix,
            &block.replace("\"item\"", "'item'"),
            EXPLAINED,
        ),
        bench(
            "indentation differs",
            &dos,
            &block.replace("    ", "\t"),
            EXPLAINED,
        ),
        bench(
            "a slip in the only line",
            &unix,
            "    let valeu_150000 = compute(150000, \"itme\");\n",
            EXPLAINED,
        ),
        bench(
            "no line shared",
            &unix,
            &"Lorem ipsum dolor sit amet, consectetur adipiscing elit\n".repeat(5),
            EXPLAINED,
        ),
        bench(
            "every line shared, other order",
            &unix,
            &"}\n    }\n".repeat(50),
            EXPLAINED,
        ),
        bench(
            "a FIND of 2,000 lines with one slip",
            &unix,
            &long(&unix),
            EXPLAINED,
        ),
        bench("very frequent", &unix, "    }\n", EXPLAINED),
    ]
}

/// Returns a file that resembles code: blocks with unique starts and identical ends.
fn file(end: &str) -> String {
    (0..LINES / 4)
        .map(|n| {
            let n = n * 4;
            [
                "    let value_",
                "N",
                " = compute(N, \"item\");",
                end,
                "    if value_N > 0 {",
                end,
                "    }",
                end,
                "}",
                end,
            ]
            .concat()
            .replace('N', &n.to_string())
        })
        .collect()
}

fn long(text: &str) -> String {
    let lines: Vec<&str> = text.lines().skip(100_000).take(2000).collect();
    lines
        .join("\n")
        .replace("compute(101000,", "compute(101001,")
        + "\n"
}

/// Prints the median of five runs. Returns `false` if it exceeds the budget.
fn measure(bench: &Bench) -> bool {
    let mut times: Vec<Duration> = (0..5).map(|_| once(bench)).collect();
    times.sort();
    let kept = times[2] <= bench.budget;
    println!(
        "{:40} {:7.1} ms  {}",
        bench.name,
        times[2].as_secs_f64() * 1000.0,
        if kept { "ok" } else { "over budget" }
    );
    kept
}

fn once(bench: &Bench) -> Duration {
    let start = Instant::now();
    let result = apply(&bench.text, &bench.find, "x\n");
    let message = result.as_ref().err().map(|error| {
        let case = FailedPair {
            path: "a.rs",
            text: &bench.text,
            number: 1,
            count: 1,
            find: &bench.find,
            replace: "x\n",
            others: &[],
        };
        explain(&case, error)
    });
    let time = start.elapsed();
    assert_eq!(
        result.is_ok(),
        bench.budget == FOUND,
        "{}: {message:?}",
        bench.name
    );
    std::hint::black_box((result.ok(), message));
    time
}
