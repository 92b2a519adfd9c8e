//! Data for displaying sessions and turns, in the terminal or a browser. Everything is bounded.
//! Unreadable parts are named and do not hide the rest.

pub mod timeline;
pub mod turn_page;

use std::borrow::Cow;
use std::path::Path;

use turn_page::{FileView, TurnPage};

use crate::query::log::LogRow;
use crate::query::view::timeline::{SessionLane, SessionPage};
use crate::session::bare::Redaction;
use crate::text::leak::LeakKind;

/// For pages that leave this machine.
pub fn redaction(home: Option<&Path>) -> Redaction {
    Redaction {
        kinds: LeakKind::ALL.to_vec(),
        home: home.and_then(|home| home.to_str().map(str::to_owned)),
        keeps_code: false,
    }
}

impl Redaction {
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes(), false) {
            Some(plain) => String::from_utf8_lossy(&plain).into_owned().into(),
            None => text.into(),
        }
    }

    fn apply(&self, text: &mut String) {
        if let Cow::Owned(plain) = self.text(text) {
            *text = plain;
        }
    }

    fn apply_to<'a>(&self, texts: impl IntoIterator<Item = &'a mut String>) {
        texts.into_iter().for_each(|text| self.apply(text));
    }

    pub fn row(&self, row: &mut LogRow) {
        self.apply_to([&mut row.title, &mut row.agent]);
        self.apply_to(&mut row.model);
        self.apply_to(&mut row.files);
        self.apply_to(&mut row.not_brought);
        self.apply_to(row.landed.as_mut().map(|landed| &mut landed.branch));
    }

    pub fn session(&self, page: &mut SessionPage) {
        self.lane(&mut page.lane);
    }

    pub fn lane(&self, lane: &mut SessionLane) {
        lane.rows.iter_mut().for_each(|row| self.row(row));
        self.apply_to([&mut lane.request, &mut lane.ailing].into_iter().flatten());
    }

    /// Without the contents of files, for which there is [`Redaction::file`].
    pub fn turn(&self, page: &mut TurnPage) {
        self.row(&mut page.row);
        let texts = [&mut page.message, &mut page.answer, &mut page.plan];
        self.apply_to(texts.into_iter().flatten());
        self.apply_to(
            [&mut page.report, &mut page.closing_text]
                .into_iter()
                .flatten(),
        );
        for output in &mut page.outputs {
            self.apply_to([&mut output.name, &mut output.text]);
        }
        for input in &mut page.input {
            self.apply_to([&mut input.name].into_iter().chain(&mut input.note));
        }
        self.apply_to(page.files.iter_mut().map(|file| &mut file.path));
        self.apply_to(&mut page.artifacts);
        self.apply(&mut page.meta);
        self.apply_to(&mut page.errors);
    }

    pub fn file(&self, mut file_view: FileView) -> FileView {
        match &mut file_view {
            FileView::Text(text) | FileView::Link(text) | FileView::Unreadable(text) => {
                self.apply(text);
            }
            FileView::Absent
            | FileView::Binary { .. }
            | FileView::TooLarge { .. }
            | FileView::Submodule(_) => {}
        }
        file_view
    }
}
