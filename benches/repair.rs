//! Benchmarks the repair of 5 MB replies: a valid plan, a damaged one, and random fences.
//!
//! Prints megabytes per second and fails below the budgets of `docs/formats/repair.md`.

#![allow(clippy::print_stdout, reason = "the numbers are the result")]

use std::time::{Duration, Instant};

use teddy::plan::repair::repair;

// In bytes, per reply.
const SIZE: usize = 5_000_000;
const HEAD: &str =
    "# T\n- **Status:** Green\n\n## Rationale\n````text\nr\n````\n\n## Action Plan\n";

fn main() {
    let good = plan("`````", "`````");
    let bad = plan("```", "```");
    let words = words();
    let random = random_fences();
    let lines = [
        ("by the rule", &good, 100.0),
        ("damaged", &bad, 20.0),
        ("prose with fences", &words, 10.0),
        ("random fences", &random, 1.0),
    ];
    for (name, reply, budget) in lines {
        let speed = reply.len() as f64 / 1e6 / fastest(reply).as_secs_f64();
        println!(
            "{name:<20} {speed:8.1} MB/s (budget {budget} MB/s), level {:?}",
            repair(reply).level
        );
        assert!(speed >= budget, "{name} is too slow");
    }
}

// A slow reply is measured only once.
fn fastest(reply: &str) -> Duration {
    let run = || {
        let start = Instant::now();
        std::hint::black_box(repair(std::hint::black_box(reply)));
        start.elapsed()
    };
    let first = run();
    if first > Duration::from_secs(1) {
        first
    } else {
        (0..5).map(|_| run()).min().unwrap_or(first).min(first)
    }
}

fn plan(open: &str, close: &str) -> String {
    let mut text = HEAD.to_owned();
    for number in 0.. {
        let code =
            "    let value = compute(input, &options)?; // a line of code as they are\n".repeat(20);
        let body = format!(
            "# Part {number}\n\nSome words.\n\n```rust\nfn main() {{\n{code}}}\n```\n\n- an item\n- another one\n"
        );
        text.push_str(&format!("\n### `CREATE`\n- **File Path:** [d/{number}.md](/d/{number}.md)\n- **Description:** Do it.\n"));
        text.push_str(&format!("{open}markdown\n{body}{close}\n"));
        if text.len() > SIZE {
            return text;
        }
    }
    text
}

fn words() -> String {
    let part = "Some words on the matter.\n\n```sh\nmake all\n```\n\n## A heading\n\n- one\n- two\n\n```\nplain\n```\n\n";
    let item =
        "\n### `CREATE`\n- **File Path:** [a.md](/a.md)\n- **Description:** Do it.\n```markdown\n";
    format!(
        "{HEAD}{item}{}The end.\n```\n",
        part.repeat(SIZE / part.len())
    )
}

fn random_fences() -> String {
    let fences = [
        "```",
        "````",
        "```md",
        "````sh",
        "~~~",
        "`````",
        "  ```",
        "``` (end)",
        "### `READ`",
        "text",
    ];
    let mut text =
        format!("{HEAD}\n### `CREATE`\n- **File Path:** [a.md](/a.md)\n```markdown\nx\n");
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    while text.len() < SIZE {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        text.push_str(fences[(seed >> 33) as usize % fences.len()]);
        text.push('\n');
    }
    text
}
