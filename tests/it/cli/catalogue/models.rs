//! Models that cannot be called or give no answer.

use super::{Page, project};
use crate::fake::{Act, Fake, begun, response, stream};
use crate::plans::{create, plan};

const PLAN: [&str; 3] = ["plan", "-m", "go"];

#[test]
fn a_model_that_cannot_be_asked() {
    let repo = project();
    let mut page = Page::default();
    page.refused(&repo, &PLAN);
    for model in [
        "nonsense",
        "openai:gpt-5",
        "anthropic:claude",
        "command:no-such-program",
        "command:sh -c 'echo no credit >&2; exit 9'",
        "command:true",
        "manual:chat",
        "replay:nowhere",
    ] {
        page.refused(&repo, &[&PLAN[..], &["--model", model]].concat());
    }
    // The session keeps the model that was named.
    repo.workflow().new_session("other").done();
    repo.configure(
        "model: gpt\nmodels: { gpt: { kind: openai, id: gpt-5, base_url: nonsense } }\n",
    );
    page.refused(&repo, &PLAN);
    repo.configure("model: gpt\nmodels: { gpt: { kind: openai, id: gpt-5, api_key_command: [sh, -c, exit 1] } }\n");
    page.refused(&repo, &PLAN);
    repo.reply(&plan("One", &[create("b.txt", "b\n")]));
    std::fs::remove_file(repo.beside("answers/999.md")).unwrap();
    page.refused(&repo, &["retry", "0"]);
    page.compare("models");
}

#[test]
fn a_model_whose_answers_are_used_up() {
    let repo = project();
    repo.reply(&plan("One", &[create("b.txt", "b\n")]));
    repo.reply(&plan("Two", &[create("c.txt", "c\n")]));
    std::fs::remove_file(repo.beside("answers/999.md")).unwrap();
    let model = format!("replay:{}", repo.beside("answers").display());
    for _ in 0..2 {
        repo.done(&["-q", "plan", "-m", "go", "--model", &model]);
        repo.done(&["-q", "execute", "-y"]);
    }
    Page::default()
        .refused(&repo, &["-q", "plan", "-m", "more", "--model", &model])
        .compare("recorded-answers");
}

fn refusal(status: &str, words: &str) -> Vec<Act> {
    let body = serde_json::json!({ "error": { "message": words } }).to_string();
    let headers = "content-type: application/json\r\nretry-after: 0\r\n";
    vec![Act::Send(response(status, headers, &body))]
}

#[test]
fn a_provider_that_refuses_or_breaks_off() {
    let repo = project();
    let page_of = |body: &str| {
        vec![Act::Send(response(
            "200 OK",
            "content-type: text/html\r\n",
            body,
        ))]
    };
    let elsewhere = "location: http://elsewhere.invalid/\r\n";
    let truncated = stream("# Half", "length", (10, 10));
    let filtered = stream("# Half", "content_filter", (10, 10));
    let cases: [(Vec<Act>, usize, &str); 14] = [
        (refusal("401 Unauthorized", "bad key"), 1, ""),
        (refusal("404 Not Found", "no such model"), 1, ""),
        (
            refusal("400 Bad Request", "maximum context length is 8192"),
            1,
            "",
        ),
        (
            refusal("402 Payment Required", "more credits, please"),
            1,
            "",
        ),
        (refusal("429 Too Many Requests", "slow down"), 6, ""),
        (refusal("500 Internal Server Error", "oops"), 6, ""),
        (
            vec![Act::Send(response("307 Temporary Redirect", elsewhere, ""))],
            1,
            "",
        ),
        (page_of("<html>Log in</html>"), 1, ""),
        (vec![Act::Send(begun("# Half"))], 1, ""),
        (
            vec![Act::Send(begun("# Half")), Act::Stall],
            1,
            ", idle_timeout: 1",
        ),
        (vec![Act::Send(stream("", "stop", (10, 0)))], 1, ""),
        (vec![Act::Send(truncated)], 1, ""),
        (vec![Act::Send(filtered)], 1, ""),
        (Vec::new(), 0, ""),
    ];
    let mut page = Page::default();
    for (acts, connections, more) in cases {
        // `refused_with` runs each command twice.
        let provider = Fake::start(vec![acts; connections * 2]);
        repo.configure(&provider.config(more));
        page.refused_with(
            &repo,
            &[&["-q"], &PLAN[..]].concat(),
            &[("FAKE_KEY", "0123456789")],
        );
    }
    page.compare("providers");
}

#[test]
fn a_call_that_would_cost_too_much() {
    let repo = project();
    let provider = Fake::start(Vec::new());
    let price = ", price: { input: 1000000, output: 1000000 }";
    repo.configure(&provider.config(price));
    let mut page = Page::default();
    page.refused_with(&repo, &PLAN, &[("FAKE_KEY", "0123456789")]);
    page.compare("cost-limit");
}

#[test]
fn a_pipeline_that_is_wrong() {
    let repo = project();
    repo.write(".teddy/pipelines/think.yaml", "steps: []\n");
    let mut page = Page::default();
    let with = |name: &'static str| [&PLAN[..], &["--pipeline", name]].concat();
    page.refused(&repo, &with("none"));
    page.refused(&repo, &with("think"));
    page.refused(&repo, &with("../think"));
    repo.done(&["trust", "-y"]);
    page.refused(&repo, &with("think"));
    page.compare("pipelines");
}
