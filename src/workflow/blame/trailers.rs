//! Parses the `Teddy-Session` and `Teddy-Turn` trailers of a commit message.

use crate::session::name::SessionName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnTrailer {
    pub(super) number: u64,
    pub(super) id: String,
}

/// Malformed trailers are skipped, because anyone can write a message.
pub(super) fn parse_trailers(message: &str) -> (Vec<SessionName>, Vec<TurnTrailer>) {
    let (mut sessions, mut turns) = (Vec::new(), Vec::new());
    for line in message.lines() {
        if let Some(name) = line.strip_prefix("Teddy-Session: ") {
            if let Ok(name) = SessionName::from_ref(name.trim())
                && !sessions.contains(&name)
            {
                sessions.push(name);
            }
        } else if let Some(turn) = line.strip_prefix("Teddy-Turn: ")
            && let Some((number, id)) = turn.trim().split_once(' ')
            && let Ok(number) = number.parse()
        {
            turns.push(TurnTrailer {
                number,
                id: id.to_owned(),
            });
        }
    }

    (sessions, turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_sessions_and_turns() {
        let (sessions, turns) = parse_trailers(
            "Do it\n\nTeddy-Session: demo\nTeddy-Turn: 1 aa\nTeddy-Turn: 2 bb\n\n\
             Teddy-Session: ../x\nTeddy-Session: demo\nTeddy-Turn: x cc\nTeddy-Turn: 7\n",
        );
        let sessions: Vec<String> = sessions.iter().map(ToString::to_string).collect();
        assert_eq!(sessions, ["demo"]);
        let turns: Vec<_> = turns
            .iter()
            .map(|turn| (turn.number, turn.id.as_str()))
            .collect();
        assert_eq!(turns, [(1, "aa"), (2, "bb")]);
    }
}
