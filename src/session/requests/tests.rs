//! Tests of request lists.

use super::*;
use crate::session::requests::HEADING_SIZE;

fn request(turn: u64, text: &str) -> UserRequest {
    UserRequest {
        turn,
        session: "s".to_owned(),
        turn_id: Uuid::from_u128(u128::from(turn)),
        state: RequestState::Open,
        work: None,
        question: None,
        text: text.to_owned(),
        cut: false,
    }
}

/// Makes one request per turn, starting with turn 1.
fn list(texts: &[&str]) -> Requests {
    let requests = texts.iter().zip(1..);
    Requests {
        requests: requests.map(|(text, turn)| request(turn, text)).collect(),
        ..Requests::default()
    }
}

/// Renders turn, text and state of each request.
fn render(requests: &Requests) -> String {
    let mark = |state| match state {
        RequestState::Open => "",
        RequestState::Undone => "-",
        RequestState::Replaced => "~",
    };
    let each: Vec<String> = requests
        .requests
        .iter()
        .map(|r| format!("{}{}{}", mark(r.state), r.turn, r.text))
        .collect();
    format!("{} +{}", each.join(" "), requests.left_out)
}

#[test]
fn q1_what_is_written_is_read_again() {
    let mut requests = list(&["add a form\n  with two fields\n", "# no comment: \"x\"\r\n"]);
    requests.left_out = 3;
    requests.requests[1].question = Some("Which?\n".to_owned());
    requests.requests[1].state = RequestState::Undone;
    assert_eq!(Requests::read(&requests.write()).unwrap(), requests);
    assert!(
        requests
            .write()
            .starts_with("schema: 1\nleft_out: 3\nrequests:\n- turn: 1\n"),
        "{}",
        requests.write()
    );
}

#[test]
fn q1_a_newer_version_is_refused_by_its_number() {
    let error = Requests::read("schema: 9\nrequests: []\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`requests.yaml` has schema 9, and this teddy reads up to 1: it was written by a newer one"
    );
}

#[test]
fn q1_a_file_that_is_too_large_is_named() {
    let error = Requests::read(&"#".repeat((4 << 20) + 1)).unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "`requests.yaml`: the file has 4194305 bytes; at most 4194304 are read"
    );
}

#[test]
fn q4_a_session_that_goes_back_keeps_later_requests_as_undone() {
    let tip = list(&["a", "b", "c"]);
    assert_eq!(render(&tip.clone().back_to(list(&["a"]))), "1a -2b -3c +0");
    // The redo.
    let back = tip.clone().back_to(list(&["a"]));
    assert_eq!(render(&back.back_to(list(&["a", "b"]))), "1a 2b -3c +0");
    assert_eq!(render(&tip.back_to(Requests::default())), "-1a -2b -3c +0");
}

#[test]
fn q5_a_piece_of_work_takes_the_place_of_the_one_before_it() {
    let work = |turn, text| UserRequest {
        work: Some(format!("Task {turn}")),
        ..request(turn, text)
    };
    let mut requests = list(&["a"]);
    requests.push(work(2, "b"));
    requests.push(work(3, "c"));
    requests.push(request(4, "d"));

    assert_eq!(render(&requests), "1a 3c 4d +0");
}

#[test]
fn q6_the_oldest_ones_behind_the_first_are_left_out() {
    let four = 4 * (HEADING_SIZE + 2);
    let few = list(&["a", "b", "c", "d"]);
    assert_eq!(render(&few.limited_to(four)), "1a 2b 3c 4d +0");
    let many: Vec<&str> = vec!["xx"; 9];
    assert_eq!(render(&list(&many).limited_to(four)), "1xx 7xx 8xx 9xx +5");
    let mut undone = list(&many);

    undone.requests[0].state = RequestState::Undone;
    // The first open request is kept.
    assert_eq!(render(&undone.limited_to(four)), "2xx 7xx 8xx 9xx +5");
}

#[test]
fn q6_a_long_request_is_cut_before_another_is_left_out() {
    let long = "ä".repeat(400);
    let cut = list(&[&long, "b", "c"]).limited_to(400);
    let [first, b, c] = cut.requests.as_slice() else {
        panic!("{cut:?}")
    };
    assert_eq!(
        (first.cut, b.text.as_str(), c.text.as_str(), cut.left_out),
        (true, "b", "c", 0)
    );
    assert_eq!(
        first.text,
        format!(
            "{}\n[... 726 bytes left out; READ .teddy/s/01/user_prompt.txt has all of it ...]\n{}",
            "ä".repeat(25),
            "ä".repeat(12)
        )
    );
    let message = |turn| Artifact {
        session: "s".to_owned(),
        turn,
        name: "user_prompt.txt".to_owned(),
    };

    assert_eq!(
        (cut.has_whole(&message(1)), cut.has_whole(&message(2))),
        (false, true)
    );
}

/// Copies the requests through many turns, and returns the cumulative bytes read and written.
fn handed_on(turns: u64, limit: usize, text: impl Fn(u64) -> String) -> Vec<usize> {
    // Upper bound on the YAML around the messages.
    let most = (limit / HEADING_SIZE + 2) * 256 + 4 * limit;
    let (mut file, mut sums) = (Requests::default().write(), vec![0]);
    for turn in 1..=turns {
        let mut requests = Requests::read(&file).unwrap();
        requests.push(request(turn, &text(turn)));
        let requests = requests.limited_to(limit);
        let retained = requests.requests.len() as u64;
        assert!(requests.size() <= limit, "turn {turn}");
        assert_eq!(retained + requests.left_out, turn, "none is lost uncounted");

        let before = file.len();
        file = requests.write();
        assert!(file.len() <= most, "turn {turn}: {}", file.len());
        sums.push(sums[sums.len() - 1] + before + file.len());
    }

    sums
}

#[test]
fn promise_c1_the_requests_of_two_thousand_turns_cost_bounded_linear_work() {
    for text in [
        |_: u64| "continue".to_owned(),
        |turn: u64| "please\n".repeat(usize::try_from(turn % 40).unwrap()),
    ] {
        let sums = handed_on(2000, 1 << 10, text);
        let (young, old) = (sums[1000] - sums[500], sums[2000] - sums[1500]);
        assert!(old <= young + young / 10, "{young} {old}");
    }
}

#[test]
fn promise_c1_whatever_the_limit_is_the_list_can_be_read_again() {
    let mut requests = Requests::default();
    for turn in 1..=40 {
        requests.push(request(turn, &"\u{1}".repeat(64 << 10)));
    }
    let text = requests.limited_to(usize::MAX).write();
    assert!(Requests::read(&text).is_ok(), "{}", text.len());
}

#[test]
fn q6_the_first_and_the_newest_stay_however_small_the_limit_is() {
    for limit in [0, 1, 7, 100, 1000] {
        let long = "x".repeat(5000);
        let mut requests = list(&[&long, &long, &long]);
        requests.requests[2].question = Some(long.clone());
        let turns: Vec<u64> = requests
            .limited_to(limit)
            .requests
            .iter()
            .map(|r| r.turn)
            .collect();

        assert!(
            turns.starts_with(&[1]) && turns.ends_with(&[3]),
            "{turns:?}"
        );
    }
}
