//! Plans that are huge, deeply nested or slow to parse. They are refused within a time limit.

use std::time::{Duration, Instant};

use super::ground::{Ground, create, plan, run};
use crate::plans;

/// Time limit for a refusal, for a debug build on a busy machine.
const SOON: Duration = Duration::from_secs(120);

fn rows() -> Vec<(&'static str, String)> {
    let many = if crate::WORLDS { 10 } else { 1 };
    vec![
        ("2,001 actions", plan(&run("true").repeat(2001))),
        ("many actions", plan(&run("true").repeat(2000 + 800 * many))),
        (
            "17 MiB",
            plan(&create("[x](/x)").replace("evil", &"x".repeat(17 << 20))),
        ),
        ("backticks", plan(&"`".repeat(100_000 * many))),
        (
            "quotations",
            plan(&format!("{} x\n", ">".repeat(5000 * many))),
        ),
        ("lists", plan(&format!("{}x\n", "- ".repeat(5000 * many)))),
        ("brackets", plan(&"[".repeat(10_000 * many))),
        ("stars", plan(&"*a ".repeat(10_000 * many))),
        ("headings", plan(&"### x\n".repeat(500 * many))),
        ("fences", plan(&"```\n~~~\n".repeat(500 * many))),
        ("a long line", plan(&"x".repeat(200_000 * many))),
        ("nothing", String::new()),
        ("a NUL", plan(&create("[x](/x)").replace("evil", "a\0b"))),
        ("only a mark", "\u{feff}".to_owned()),
    ]
}

#[test]
fn a_bomb_of_a_plan_is_refused_soon() {
    let ground = Ground::new();
    let before = ground.state();
    let mut wrong = Vec::new();
    for (name, text) in rows() {
        let start = Instant::now();
        let tried = ground.execute(text);
        let took = start.elapsed();
        if tried.code != 3 || took > SOON || ground.state() != before || tried.words.len() > 1 << 20
        {
            wrong.push(format!(
                "{name}: exit code {}, {took:?}, {} bytes of words",
                tried.code,
                tried.words.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_flood_and_a_straggler_end_with_their_command() {
    let ground = Ground::new();
    let start = Instant::now();
    let flood = "head -c 20000000 /dev/zero | tr '\\0' x | fold -w 2000";
    let tried = ground.execute(plan(
        &(run(flood) + &run("(sleep 300; touch late) & setsid sleep 300 & echo ok")),
    ));
    assert_eq!(
        tried.code,
        0,
        "{}",
        &tried.words[tried.words.len().saturating_sub(500)..]
    );
    assert!(start.elapsed() < SOON);
    let held = ground
        .repo
        .git(&["cat-file", "-s", "refs/teddy/sessions/s:report.md"]);
    assert!(
        held.parse::<u64>().unwrap() < 1 << 20,
        "the report holds {held} bytes"
    );
}

#[test]
fn a_flood_of_short_lines_is_cut_in_the_view_and_in_the_report() {
    let repo = crate::support::TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    let script = "echo first; yes | head -c 20000000; echo last";
    let out = repo.teddy_reads(
        &["execute", "-", "-y"],
        plans::plan("Flood", &[plans::execute(script)]),
    );
    out.check(0, &["│ first", "bytes are not shown]", "│ last"]);
    // At most 1,000 lines in a tenth of a second.
    assert!(out.stderr.len() < 4 << 20, "{} bytes", out.stderr.len());
    let kept = repo.done(&["show", "@", "output/01.txt"]);
    assert!(kept.starts_with("first\ny\n") && kept.trim_end().ends_with("y\nlast"));
}
