//! Answers without a usable plan, in every protocol. TeDDy explains the problem and the fix, saves
//! the answer in the draft and runs nothing.

use std::time::Duration;

use serde_json::json;

use crate::fake::{Act, Fake, begun, events, messages, messages_begun, response, stream};
use crate::support::TestRepo;
use crate::turn::models::{SECRET, project, teddy};

#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    /// Chat Completions.
    Openai,
    /// The Messages API.
    Anthropic,
}
use Protocol::{Anthropic, Openai};

struct Case {
    name: &'static str,
    /// The script for each connection.
    acts: fn(Protocol) -> Vec<Vec<Act>>,
    more: &'static str,
}

impl Protocol {
    fn kind(self) -> &'static str {
        if self == Openai {
            "openai"
        } else {
            "anthropic"
        }
    }

    fn begun(self, text: &str) -> String {
        if self == Openai {
            begun(text)
        } else {
            messages_begun(text, &json!({ "input_tokens": 9 }))
        }
    }

    fn stream(self, text: &str, openai: &str, anthropic: &str) -> String {
        match self {
            Openai => stream(text, openai, (9, 9)),
            Anthropic => messages(text, anthropic, (&json!({ "input_tokens": 9 }), 9)),
        }
    }

    fn error(self, words: &str) -> String {
        match self {
            Openai => json!({ "error": { "message": words, "type": "some_error", "code": null } }),
            Anthropic => {
                json!({ "type": "error", "error": { "type": "some_error", "message": words } })
            }
        }
        .to_string()
    }

    fn piece(self, text: &str) -> String {
        match self {
            Openai => format!(
                "data: {}\n\n",
                json!({ "choices": [{ "delta": { "content": text } }] })
            ),
            Anthropic => format!(
                "data: {}\n\n",
                json!({ "type": "content_block_delta", "delta": { "text": text } })
            ),
        }
    }

    fn refused(self, status: &str, words: &str) -> Vec<Act> {
        vec![Act::Send(response(
            status,
            "content-type: application/json\r\nretry-after: 0\r\n",
            &self.error(words),
        ))]
    }
}

fn once(text: String) -> Vec<Vec<Act>> {
    vec![vec![Act::Send(text)]]
}

/// Error responses.
const REFUSED: &[Case] = &[
    Case {
        name: "401",
        acts: |p| vec![p.refused("401 Unauthorized", &format!("bad key {SECRET}"))],
        more: "",
    },
    Case {
        name: "403",
        acts: |p| vec![p.refused("403 Forbidden", "not for you")],
        more: "",
    },
    Case {
        name: "404",
        acts: |p| vec![p.refused("404 Not Found", "no such model")],
        more: "",
    },
    Case {
        name: "400",
        acts: |p| vec![p.refused("400 Bad Request", "maximum context length is 8192")],
        more: "",
    },
    Case {
        name: "400 spent",
        acts: |p| vec![p.refused("400 Bad Request", "Your credit balance is too low")],
        more: "",
    },
    Case {
        name: "402",
        acts: |p| vec![p.refused("402 Payment Required", "more credits, please")],
        more: "",
    },
    Case {
        name: "413",
        acts: |p| vec![p.refused("413 Payload Too Large", "too large")],
        more: "",
    },
    Case {
        name: "429",
        acts: |p| vec![p.refused("429 Too Many Requests", "slow down"); 6],
        more: "",
    },
    Case {
        name: "429 spent",
        acts: |p| vec![p.refused("429 Too Many Requests", "insufficient_quota: pay first")],
        more: "",
    },
    Case {
        name: "529",
        acts: |p| vec![p.refused("529 Overloaded", "overloaded"); 6],
        more: "",
    },
    Case {
        name: "502 page",
        acts: |_| {
            vec![
                vec![Act::Send(response(
                    "502 Bad Gateway",
                    "retry-after: 0\r\n",
                    "<html>nginx</html>"
                ))];
                6
            ]
        },
        more: "",
    },
    Case {
        name: "a web page",
        acts: |_| {
            once(response(
                "200 OK",
                "content-type: text/html\r\n",
                "<html>\n<title>Log in</title>",
            ))
        },
        more: "",
    },
    Case {
        name: "a redirect",
        acts: |_| {
            once(response(
                "307 Temporary Redirect",
                &format!("location: http://elsewhere.invalid/{SECRET}\r\n"),
                "",
            ))
        },
        more: "",
    },
];
/// Broken connections and streams.
const BROKEN: &[Case] = &[
    Case {
        name: "half a stream",
        acts: |p| once(p.begun("# Half")),
        more: "",
    },
    Case {
        name: "half of what was announced",
        acts: |p| {
            once(
                p.begun("# Half")
                    .replace("connection", "content-length: 90000\r\nconnection"),
            )
        },
        more: "",
    },
    Case {
        name: "a lie about the length",
        acts: |p| {
            once(
                p.begun("# Half")
                    .replace("connection", "content-length: 9\r\nconnection"),
            )
        },
        more: "",
    },
    Case {
        name: "silence",
        acts: |p| vec![vec![Act::Send(p.begun("# Half")), Act::Stall]],
        more: ", idle_timeout: 1",
    },
    Case {
        name: "silence from the start",
        acts: |_| vec![vec![Act::Stall]],
        more: ", first_byte_timeout: 1",
    },
    Case {
        name: "a slow drip",
        acts: |p| {
            vec![vec![
                Act::Send(p.begun("# Half")),
                Act::Drip(": wait\n".repeat(9000), Duration::from_millis(9)),
            ]]
        },
        more: ", timeout: 1",
    },
    Case {
        name: "100 MB",
        acts: |p| {
            vec![vec![
                Act::Send(events("")),
                Act::Flood(p.piece(&"x".repeat(1 << 20))),
            ]]
        },
        more: "",
    },
    Case {
        name: "an event without end",
        acts: |_| {
            vec![vec![
                Act::Send(events("data: ")),
                Act::Flood("x".repeat(1 << 16)),
            ]]
        },
        more: "",
    },
    Case {
        name: "an error in the stream",
        acts: |p| {
            once(format!(
                "{}event: error\ndata: {}\n\n",
                p.begun("# Half"),
                p.error(&format!("overloaded, {SECRET}"))
            ))
        },
        more: "",
    },
];
/// Complete answers that are not plans.
const USELESS: &[Case] = &[
    Case {
        name: "an empty answer",
        acts: |p| once(p.stream("", "stop", "end_turn")),
        more: "",
    },
    Case {
        name: "nothing at all",
        acts: |_| once(events("")),
        more: "",
    },
    Case {
        name: "cut at the limit",
        acts: |p| once(p.stream("# Half", "length", "max_tokens")),
        more: "",
    },
    Case {
        name: "only reasoning",
        acts: |p| once(p.stream("", "length", "max_tokens")),
        more: "",
    },
    Case {
        name: "filtered",
        acts: |p| once(p.stream("# Half", "content_filter", "refusal")),
        more: "",
    },
    Case {
        name: "a tool call",
        acts: |p| once(p.stream("# Half", "tool_calls", "tool_use")),
        more: "",
    },
    Case {
        name: "an error as an answer",
        acts: |p| {
            once(response(
                "200 OK",
                "content-type: application/json\r\n",
                &p.error("no credit"),
            ))
        },
        more: "",
    },
];

/// Plans with the provider. Returns the messages and the exit code.
fn reported(repo: &TestRepo, case: &Case, protocol: Protocol) -> String {
    let fake = Fake::start((case.acts)(protocol));
    repo.configure(&fake.config_as(protocol.kind(), case.more));
    let out = teddy(repo, &["plan", "-m", "make b"]);
    assert!(!out.to_string().contains(SECRET), "{}: {out}", case.name);
    // The draft has the message, the reason and the partial answer. Nothing is executed.
    let meta: serde_yaml::Value =
        serde_yaml::from_str(&repo.git(&["show", "refs/teddy/drafts/demo:meta.yaml"])).unwrap();
    let failure = meta["failure"]
        .as_str()
        .unwrap_or_else(|| panic!("{}: {out}", case.name));
    assert!(
        out.stderr.contains(&format!("error: {failure}\n")),
        "{}: {failure}: {out}",
        case.name
    );
    let kept = repo.git(&[
        "ls-tree",
        "--name-only",
        "refs/teddy/drafts/demo",
        "reply.md",
        "user_prompt.txt",
    ]);
    assert_eq!(
        kept.contains("reply.md"),
        out.stderr.contains("what arrived was not taken as a plan"),
        "{}",
        case.name
    );
    assert!(
        kept.contains("user_prompt.txt")
            && !repo
                .git(&["grep", "-I", "-c", "", "refs/teddy/drafts/demo"])
                .contains(SECRET)
    );
    let words = out
        .stderr
        .split_once("error: ")
        .unwrap_or_else(|| panic!("{}: {out}", case.name))
        .1
        .trim_end()
        .replace("\nhint: ", "\n  ");
    let words = words
        .replace(&fake.origin, "http://fake")
        .replace("/v1/messages", "/v1/...")
        .replace("/v1/chat/completions", "/v1/...");
    let words = words
        .replace("`refusal`", "`content_filter`")
        .replace("`tool_use`", "`tool_calls`");
    format!(
        "{}: {words}{}",
        case.name,
        if kept.contains("reply.md") {
            " [kept]"
        } else {
            ""
        }
    )
}

/// Returns the messages for all cases. They must be equal in both protocols.
fn table(cases: &[Case]) -> String {
    let table = |protocol| {
        let repo = project();
        let said: Vec<String> = cases
            .iter()
            .map(|case| reported(&repo, case, protocol))
            .collect();
        teddy(&repo, &["execute", "-y"]).check(1, &["no plan is waiting"]);
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        said.join("\n")
    };
    let (openai, anthropic) = std::thread::scope(|scope| {
        let other = scope.spawn(|| table(Anthropic));
        (table(Openai), other.join().unwrap())
    });
    assert_eq!(openai, anthropic);
    openai
}

#[test]
fn a_refusal_has_its_words_and_a_remedy() {
    insta::assert_snapshot!(table(REFUSED), @r"
    401: http://fake does not accept the key: bad key [redacted key]
      check that the key is current and belongs to this address; `api_key_env` names its variable
    403: http://fake does not accept the key: not for you
      check that the key is current and belongs to this address; `api_key_env` names its variable
    404: http://fake/v1/... knows no model `gpt-5`: no such model
      check the model's `id`, and that `base_url` ends where the API begins (mostly `/v1`)
    400: the request was refused with status 400: maximum context length is 8192
      if the input is too long, take resources out of the context (`teddy context list` shows the largest); else check the model's settings
    400 spent: no credit is left: Your credit balance is too low
      add credit at the provider, or use another model with `--model`
    402: no credit is left: more credits, please
      add credit at the provider, or use another model with `--model`
    413: the request was refused with status 413: too large
      if the input is too long, take resources out of the context (`teddy context list` shows the largest); else check the model's settings
    429: too many requests, or no credit left: slow down
      wait a while, raise the limit at the provider, or use another model with `--model`
    429 spent: no credit is left: insufficient_quota: pay first
      add credit at the provider, or use another model with `--model`
    529: the provider failed with status 529: overloaded
      try again later, or use another model with `--model`
    502 page: the provider failed with status 502: an HTML page
      try again later, or use another model with `--model`
    a web page: http://fake/v1/... returned something that is not a model response: `<html> <title>Log in</title>`
      check `base_url`: it seems to be a web page and not an API, or a proxy is in between
    a redirect: http://fake redirects to http://elsewhere.invalid/[redacted key], which is not followed
      set `base_url` to the address of the API itself; a key is never forwarded to another address
    ");
}

#[test]
fn an_answer_that_breaks_off_has_its_words_and_is_kept() {
    insta::assert_snapshot!(table(BROKEN), @r"
    half a stream: the answer broke off: the connection closed before the end
      run `teddy plan` again; what arrived is kept and was not executed [kept]
    half of what was announced: the answer broke off: end of file before message length reached
      run `teddy plan` again; what arrived is kept and was not executed [kept]
    a lie about the length: the answer broke off: the connection closed before the first event
      run `teddy plan` again, or use another model with `--model`
    silence: nothing arrived for 1 s
      run `teddy plan` again, or raise the model's `idle_timeout` and `first_byte_timeout` [kept]
    silence from the start: nothing arrived for 1 s
      run `teddy plan` again, or raise the model's `idle_timeout` and `first_byte_timeout`
    a slow drip: the answer was not complete after 1 s
      raise the model's `timeout`, or ask for a smaller step [kept]
    100 MB: the answer is larger than 32 MB
      ask for a smaller step; an answer of this size is not a plan [kept]
    an event without end: the answer is larger than 8 MB
      ask for a smaller step; an answer of this size is not a plan
    an error in the stream: the provider stopped in the middle of its answer: overloaded, [redacted key]
      run `teddy plan` again; what arrived is kept and was not executed [kept]
    ");
}

#[test]
fn an_answer_that_is_no_plan_has_its_words_and_is_never_executed() {
    insta::assert_snapshot!(table(USELESS), @r"
    an empty answer: the answer is empty
      run `teddy plan` again, or raise the model's `max_tokens` if it reasons before it answers
    nothing at all: the answer is empty: the server sent nothing
      run `teddy plan` again, or raise the model's `max_tokens` if it reasons before it answers
    cut at the limit: the answer was cut at the limit of tokens
      raise the model's `max_tokens`, or ask for a smaller step [kept]
    only reasoning: the answer is empty: the limit of tokens was reached before any text
      run `teddy plan` again, or raise the model's `max_tokens` if it reasons before it answers
    filtered: the model ended its answer before it was done: `content_filter`
      rephrase the request, or use another model with `--model` [kept]
    a tool call: the model ended its answer before it was done: `tool_calls`
      rephrase the request, or use another model with `--model` [kept]
    an error as an answer: the provider answered with an error: no credit
      run `teddy plan` again, or use another model with `--model`
    ");
}
