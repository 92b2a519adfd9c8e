//! Sessions and turns for tests.

use crate::git::object::CommitId;
use crate::query::log::LogRow;
use crate::query::view::timeline::SessionLane;
use crate::session::meta::Status;
use crate::session::name::SessionName;

/// The commit is derived from number and title, so it is stable and distinct.
pub(super) fn row(number: u64, title: &str, status: Status) -> LogRow {
    let seed = title.bytes().fold(number, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    LogRow {
        number,
        turn_id: uuid::Uuid::nil(),
        commit: format!("{:08x}{seed:032x}", number + 0x9e37_79b1)
            .parse::<CommitId>()
            .unwrap(),
        status,
        title: title.to_owned(),
        agent: "Pathfinder".to_owned(),
        depth: 0,
        model: Some("anthropic:claude".to_owned()),
        tokens_in: Some(3600),
        tokens_out: Some(250),
        cost: Some(0.017),
        spent: None,
        before: None,
        after: None,
        files: vec!["src/a.rs".to_owned()],
        too_many_files: false,
        without_code: false,
        not_brought: Vec::new(),
        landed: None,
        showed_files: false,
        time: None,
    }
}

pub(super) fn numbered(numbers: std::ops::Range<u64>) -> Vec<LogRow> {
    let title = |number| format!("Turn {number}");
    let rows = numbers.rev();
    rows.map(|number| row(number, &title(number), Status::Executed))
        .collect()
}

pub(super) fn lane(name: &str, rows: Vec<LogRow>) -> SessionLane {
    SessionLane {
        name: SessionName::parse(name).unwrap(),
        in_use: false,
        request: None,
        parent: None,
        rows,
        ailing: None,
    }
}
