//! All differences of a plan, with comments on their lines. A pure state machine from a key to a
//! new state and a command.
//!
//! Files can be folded. A difference of many lines starts folded, and so do generated files.

use std::ops::RangeInclusive;

use super::diff::{MAX_COLUMNS, cut_to_change, is_hunk_header};
use super::key::Key;
use super::list::List;
use super::style::{StyledLine, Tone};
use super::summary::ReviewedFile;
use crate::session::comments::{FollowedComment, LineComment, MAX_COMMENTS};
use crate::text::counted;
use crate::text::path::RepoPath;
use crate::text::sanitize::sanitize_line;

/// Larger differences start folded.
const MAX_OPEN: usize = 1000;

/// Longer files are shown up to this line.
const MAX_WHOLE: usize = 20_000;

/// On a narrow terminal, the last ones are cut.
const KEYS: &str = "c comment · s decline · q back · ? help · V range · w whole file · ] [ hunk · } { file · tab fold";

/// While the cursor is on a comment.
const COMMENT_KEYS: &str = "c change it · u take it back · s decline · ? help · q back";

/// Keys of the screen, with their descriptions.
pub const HELP: [(&str, &str); 15] = [
    ("↑ ↓  k j", "move"),
    ("PgUp PgDn", "move by a page, as do b and space"),
    ("home end  g G", "to the first, to the last"),
    ("] [", "to the next or previous hunk"),
    ("} {", "to the next or previous file"),
    ("→ ←  l h, tab", "show or hide the lines of the file"),
    (
        "w",
        "show the whole file with its changed lines marked; again to go back",
    ),
    ("V", "start a range of lines; again to leave it"),
    ("c", "write or change a comment on the line or the range"),
    ("u", "take the comment back"),
    ("s", "decline the plan, and send the comments"),
    ("/", "search; n and N go to the next and the one before"),
    ("ctrl-z", "suspend; fg resumes"),
    ("?", "this help"),
    ("q, esc", "back; comments that are not sent are kept"),
];

/// A line of a file or a difference, with its number in the file after the plan.
type NumberedLine = (StyledLine, Option<usize>);

/// State of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commenting {
    files: Vec<ReviewedFile>,
    is_open: Vec<bool>,
    /// All lines of a file instead of its difference, if the user wants to see them.
    whole: Vec<Option<Vec<NumberedLine>>>,
    comments: Vec<LineComment>,
    /// Comments on the previous plan, which cannot be edited.
    earlier: Vec<FollowedComment>,
    rows: Vec<DiffRow>,
    pub list: List,
    /// Row at which a range starts.
    anchor: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffRow {
    File(usize),
    /// A line of a file's difference.
    Line(usize, usize),
    Comment(usize),
    /// A comment on the previous plan, by its index.
    Earlier(usize),
}

/// Command that a key returns to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommentingCommand {
    /// Ask for the text of a comment. `index` is the comment to change, if it exists.
    Write {
        comment: Box<LineComment>,
        index: Option<usize>,
    },
    /// A comment was removed.
    Changed,
    /// Decline the plan with the comments.
    Send,
    Back,
    Help,
}

impl Commenting {
    /// Returns the screen with the cursor at the first changed line of a file, or of the first one.
    /// Comments on the previous plan, `earlier`, are below the lines that are now in their place.
    pub fn new(
        files: Vec<ReviewedFile>,
        comments: Vec<LineComment>,
        earlier: &[FollowedComment],
        path: Option<&str>,
    ) -> Commenting {
        let count: usize = files.iter().map(|file| file.rows.len()).sum();
        let is_open = files
            .iter()
            .map(|file| match path {
                Some(path) if file.path == path => true,
                _ => count <= MAX_OPEN && !file.is_generated,
            })
            .collect();
        let mut screen = Commenting {
            whole: vec![None; files.len()],
            files,
            is_open,
            comments,
            earlier: earlier.to_vec(),
            rows: Vec::new(),
            list: List::default(),
            anchor: None,
        };
        screen.list_rows();
        let mut paths = screen.files.iter().map(|file| file.path.as_str());
        let file = path.and_then(|path| paths.position(|other| other == path));
        screen.list.go_to(screen.start_of(file.unwrap_or(0)));
        screen
    }

    /// Returns the row of a file's first change: a line that can have a comment, if the change has
    /// one. A file without changed lines, or a folded one, starts at its heading.
    fn start_of(&self, file: usize) -> usize {
        let lines = self.files.get(file).map_or(&[][..], |file| &file.rows);
        let first = lines.iter().position(|line| is_changed(&line.0));
        let change = first.map_or(0..0, |first| {
            let length = lines[first..].iter().take_while(|line| is_changed(&line.0));
            first..first + length.count()
        });
        let added = change.clone().find(|at| is_added(&lines[*at].0));
        let target = added.or(first).map(|at| DiffRow::Line(file, at));
        let at = target.and_then(|target| self.index_of(target));
        at.or_else(|| self.index_of(DiffRow::File(file)))
            .unwrap_or(0)
    }

    fn index_of(&self, row: DiffRow) -> Option<usize> {
        self.rows.iter().position(|other| *other == row)
    }

    pub fn comments(&self) -> &[LineComment] {
        &self.comments
    }

    /// Sets the text of a new or existing comment.
    pub fn write(&mut self, comment: LineComment, index: Option<usize>) {
        match index {
            Some(index) => self.comments[index] = comment,
            None => self.comments.push(comment),
        }
        self.list_rows();
    }

    /// Fits the screen to a number of visible rows.
    pub fn fit(&mut self, height: usize) {
        self.list.fit(self.rows.len(), height);
    }

    pub fn press(&mut self, key: &Key) -> Option<CommentingCommand> {
        let mut list = std::mem::take(&mut self.list);
        let is_taken = list.read(key, |at| self.line(self.rows[at]).text());
        self.list = list;
        match is_taken {
            true => None,
            false => self.command(key),
        }
    }

    fn command(&mut self, key: &Key) -> Option<CommentingCommand> {
        let cursor = self.list.cursor();
        match key {
            Key::Char('q') | Key::Esc | Key::Ctrl('c' | 'd') | Key::Terminate => {
                return Some(CommentingCommand::Back);
            }
            Key::Char('s') => return Some(CommentingCommand::Send),
            Key::Char('?') => return Some(CommentingCommand::Help),
            Key::Char('c') => return self.comment(),
            Key::Char('u') => return self.remove(),
            Key::Char('V') => self.anchor = self.anchor.is_none().then_some(cursor),
            Key::Char(']') => self.jump(true, Commenting::is_hunk),
            Key::Char('[') => self.jump(false, Commenting::is_hunk),
            Key::Char('}') => self.jump(true, |_, row| matches!(row, DiffRow::File(_))),
            Key::Char('{') => self.jump(false, |_, row| matches!(row, DiffRow::File(_))),
            Key::Char('w') => self.toggle_whole(),
            Key::Tab => self.fold(None),
            Key::Right | Key::Char('l') => self.fold(Some(true)),
            Key::Left | Key::Char('h') => self.fold(Some(false)),
            _ => {}
        }
        None
    }

    fn row(&self) -> Option<DiffRow> {
        self.rows.get(self.list.cursor()).copied()
    }

    /// Returns the range of rows under the cursor.
    fn range(&self) -> RangeInclusive<usize> {
        let cursor = self.list.cursor();
        let anchor = self.anchor.unwrap_or(cursor);
        anchor.min(cursor)..=anchor.max(cursor)
    }

    fn comment(&mut self) -> Option<CommentingCommand> {
        if let Some(DiffRow::Comment(index)) = self.row() {
            return Some(CommentingCommand::Write {
                comment: Box::new(self.comments[index].clone()),
                index: Some(index),
            });
        }
        match self.comment_on_range() {
            Ok(comment) => {
                self.anchor = None;
                let same = |other: &LineComment| {
                    (&other.path, other.first, other.last)
                        == (&comment.path, comment.first, comment.last)
                };
                let index = self.comments.iter().position(same);
                let comment = index.map_or(comment, |index| self.comments[index].clone());
                Some(CommentingCommand::Write {
                    comment: Box::new(comment),
                    index,
                })
            }
            Err(why) => {
                self.list.notice = Some(why.to_owned());
                None
            }
        }
    }

    /// Returns an empty comment on the line or range under the cursor.
    fn comment_on_range(&self) -> Result<LineComment, &'static str> {
        if self.comments.len() >= MAX_COMMENTS {
            return Err("there are 1,000 comments; take one back with u first");
        }
        let range = self.range();
        let mut lines = Vec::new();
        let mut in_file = None;
        for row in self.rows.iter().take(range.end() + 1).skip(*range.start()) {
            let DiffRow::Line(file, at) = *row else {
                continue;
            };
            if in_file.is_some_and(|other| other != file) {
                return Err("a range is in one file");
            }
            in_file = Some(file);
            lines.extend(self.lines_of(file)[at].1);
        }
        let Some(file) = in_file.map(|file| &self.files[file]) else {
            return Err("move to a line of a file first");
        };
        if file.after.is_none() {
            return Err("the lines of a file without text after the plan cannot have comments");
        }
        let (Some(first), Some(last)) = (lines.iter().min(), lines.iter().max()) else {
            return Err("only a line that the file has after the plan can have a comment");
        };
        let path = RepoPath::parse(&file.path).map_err(|_| "this path cannot have comments")?;
        let text = file.after.as_deref().unwrap_or_default();
        LineComment::on(path, *first, *last, text, "").ok_or("the file has no such line")
    }

    fn remove(&mut self) -> Option<CommentingCommand> {
        let index = match self.row()? {
            DiffRow::Comment(index) => Some(index),
            DiffRow::Line(file, at) => self.comment_at(file, self.lines_of(file)[at].1),
            DiffRow::File(_) | DiffRow::Earlier(_) => None,
        };
        let Some(index) = index else {
            self.list.notice = Some("there is nothing to take back here".to_owned());
            return None;
        };
        self.comments.remove(index);
        self.list_rows();
        Some(CommentingCommand::Changed)
    }

    fn comment_at(&self, file: usize, number: Option<usize>) -> Option<usize> {
        let number = number?;
        let path = &self.files[file].path;
        let is_here = |comment: &LineComment| {
            comment.path.as_str() == path && (comment.first..=comment.last).contains(&number)
        };
        self.comments.iter().position(is_here)
    }

    /// Returns all comments, each with its file and its last line.
    fn all_comments(&self) -> Vec<(&str, Option<usize>, DiffRow)> {
        let earlier = self.earlier.iter().enumerate().map(|(index, followed)| {
            let path = followed.comment.path.as_str();
            (path, followed.line, DiffRow::Earlier(index))
        });
        let written = self.comments.iter().enumerate().map(|(index, comment)| {
            let path = comment.path.as_str();
            (path, Some(comment.last), DiffRow::Comment(index))
        });
        earlier.chain(written).collect()
    }

    fn list_rows(&mut self) {
        let mut rows = Vec::new();
        let comments = self.all_comments();
        let foreign = comments.iter().filter(|(path, ..)| {
            let mut paths = self.files.iter().map(|file| &file.path);
            !paths.any(|other| other == path)
        });
        rows.extend(foreign.map(|(.., row)| *row));
        for (at, file) in self.files.iter().enumerate() {
            let of_file = comments.iter().filter(|(path, ..)| *path == file.path);
            let mut of_file: Vec<(usize, DiffRow)> = of_file
                .map(|(_, line, row)| (line.unwrap_or(0), *row))
                .collect();
            of_file.sort_by_key(|(last, _)| *last);
            rows.extend(self.rows_of(at, &of_file));
        }
        let last = rows.len().saturating_sub(1);
        self.anchor = self.anchor.map(|anchor| anchor.min(last));
        self.list.resize(rows.len());
        self.rows = rows;
    }

    /// Returns the rows of a file. A comment is below its last line, by which `comments` are sorted,
    /// or below the heading of the file if that line is not shown.
    fn rows_of(&self, at: usize, comments: &[(usize, DiffRow)]) -> Vec<DiffRow> {
        let lines = match self.is_open[at] {
            true => self.lines_of(at),
            false => &[],
        };
        let numbers: Vec<usize> = lines.iter().filter_map(|row| row.1).collect();
        let is_shown = |last: &usize| numbers.binary_search(last).is_ok();
        let hidden = comments.iter().filter(|(last, _)| !is_shown(last));
        let mut rows = vec![DiffRow::File(at)];
        rows.extend(hidden.map(|(_, row)| *row));
        for (line, (_, number)) in lines.iter().enumerate() {
            rows.push(DiffRow::Line(at, line));
            let Some(number) = number else { continue };
            let start = comments.partition_point(|(last, _)| last < number);
            let here = comments[start..]
                .iter()
                .take_while(|(last, _)| last == number);
            rows.extend(here.map(|(_, row)| *row));
        }
        rows
    }

    fn file_under_cursor(&self) -> Option<usize> {
        match self.row()? {
            DiffRow::File(file) | DiffRow::Line(file, _) => Some(file),
            DiffRow::Comment(index) => self.file_at(&self.comments[index].path),
            DiffRow::Earlier(index) => self.file_at(&self.earlier[index].comment.path),
        }
    }

    fn file_at(&self, path: &RepoPath) -> Option<usize> {
        self.files
            .iter()
            .position(|file| file.path == path.as_str())
    }

    /// Folds or unfolds the file. `None` toggles.
    fn fold(&mut self, requested: Option<bool>) {
        let Some(file) = self.file_under_cursor() else {
            return;
        };
        self.is_open[file] = requested.unwrap_or(!self.is_open[file]);
        self.anchor = None;
        self.list_rows();
        if !self.is_open[file] {
            let heading = self.index_of(DiffRow::File(file));
            self.list.go_to(heading.unwrap_or(0));
        }
    }

    fn lines_of(&self, file: usize) -> &[NumberedLine] {
        self.whole[file]
            .as_deref()
            .unwrap_or(&self.files[file].rows)
    }

    /// Shows the whole file under the cursor, or its difference again. The cursor stays at its line.
    fn toggle_whole(&mut self) {
        let Some(file) = self.file_under_cursor() else {
            return;
        };
        let number = match self.row() {
            Some(DiffRow::Line(_, at)) => {
                let lines = &self.lines_of(file)[at..];
                lines.iter().find_map(|line| line.1)
            }
            _ => None,
        };
        self.whole[file] = match (&self.whole[file], &self.files[file].after) {
            (Some(_), _) => None,
            (None, Some(text)) => Some(whole_file(text, &self.files[file].rows)),
            (None, None) => {
                self.list.notice = Some("this file has no text after the plan".to_owned());
                return;
            }
        };
        self.is_open[file] = true;
        self.anchor = None;
        self.list_rows();
        let is_target = |row: &DiffRow| match (*row, number) {
            (DiffRow::Line(other, at), Some(number)) if other == file => {
                self.lines_of(file)[at].1 >= Some(number)
            }
            (row, _) => row == DiffRow::File(file) && number.is_none(),
        };
        let at = self.rows.iter().position(is_target);
        let at = at.or_else(|| self.index_of(DiffRow::File(file)));
        self.list.go_to(at.unwrap_or(0));
    }

    /// Returns whether the row begins a hunk; in a whole file, a run of changed lines.
    fn is_hunk(&self, row: DiffRow) -> bool {
        let DiffRow::Line(file, at) = row else {
            return false;
        };
        let lines = self.lines_of(file);
        if self.whole[file].is_some() {
            return is_added(&lines[at].0) && (at == 0 || !is_added(&lines[at - 1].0));
        }
        // The only hunk of a new file has no header.
        is_hunk_header(&lines[at].0) || at == 0 && !lines.iter().any(|line| is_hunk_header(&line.0))
    }

    fn jump(&mut self, is_forward: bool, is_target: impl Fn(&Commenting, DiffRow) -> bool) {
        let is_target = |at: &usize| is_target(self, self.rows[*at]);
        let cursor = self.list.cursor();
        let found = match is_forward {
            true => (cursor + 1..self.rows.len()).find(is_target),
            false => (0..cursor).rev().find(is_target),
        };
        match found {
            Some(at) => self.list.go_to(at),
            None => self.list.notice = Some("there is none in this direction".to_owned()),
        }
    }

    fn line(&self, row: DiffRow) -> StyledLine {
        match row {
            DiffRow::File(file) => {
                let heading = self.files[file].heading.clone();
                match self.is_open[file] {
                    true if self.whole[file].is_some() => heading.with(Tone::Faint, "  whole file"),
                    true => heading,
                    false => {
                        let lines = counted(self.lines_of(file).len(), "line");
                        heading.with(Tone::Faint, &format!("  ▸ {lines}"))
                    }
                }
            }
            DiffRow::Line(file, at) => self.lines_of(file)[at].0.clone(),
            DiffRow::Comment(index) => self.comment_line(&self.comments[index]),
            DiffRow::Earlier(index) => {
                let followed = &self.earlier[index];
                let place = match followed.line {
                    Some(_) => String::new(),
                    None => format!("{}: ", followed.comment.place()),
                };
                StyledLine::of(Tone::Accent, &format!("  « {place}"))
                    .with(Tone::Plain, &on_one_line(&followed.comment))
                    .with(Tone::Faint, &format!("  ({})", followed.status.word()))
            }
        }
    }

    fn comment_line(&self, comment: &LineComment) -> StyledLine {
        let range = match comment.last - comment.first {
            0 => format!("line {}", comment.first),
            _ => format!("lines {} to {}", comment.first, comment.last),
        };
        let path = comment.path.as_str();
        let file = self.files.iter().find(|file| file.path == path);
        let (place, note) = match file.map(|file| file.after.as_deref()) {
            None => (
                comment.place(),
                "  (the plan does not change this file now)",
            ),
            Some(Some(text)) if comment.is_on(text) => (range, ""),
            Some(_) => (range, "  (its lines changed since)"),
        };
        StyledLine::of(Tone::Accent, &format!("  » {place}: "))
            .with(Tone::Question, &on_one_line(comment))
            .with(Tone::Faint, note)
    }

    /// Returns the lines of the screen between title and keys, each with a mark. A line that is
    /// wider than the screen is cut around its first change.
    pub fn visible_lines(&self, width: usize) -> Vec<StyledLine> {
        let range = self.range();
        let line = |at: usize| {
            let mark = match at {
                _ if at == self.list.cursor() => "›",
                _ if range.contains(&at) => "┃",
                _ => " ",
            };
            let line = cut_to_change(self.line(self.rows[at]), width.saturating_sub(1));
            StyledLine::of(Tone::Accent, mark).append(line)
        };
        self.list.visible().map(line).collect()
    }

    /// Returns the last line of the screen.
    pub fn footer(&self) -> StyledLine {
        if let Some(status) = self.list.status() {
            return status;
        }
        let count = match self.comments.len() {
            0 => String::new(),
            count => format!(", {}", counted(count, "comment")),
        };
        let place = format!("{}/{}{count} ", self.list.cursor() + 1, self.rows.len());
        let keys = match self.row() {
            Some(DiffRow::Comment(_)) => COMMENT_KEYS,
            _ => KEYS,
        };
        StyledLine::of(Tone::Accent, &place).with(Tone::Faint, keys)
    }
}

fn on_one_line(comment: &LineComment) -> String {
    let lines: Vec<_> = comment.text.lines().map(sanitize_line).collect();
    lines.join(" ↵ ")
}

/// Returns the lines of a file. Those that its difference adds are marked.
fn whole_file(text: &str, difference: &[NumberedLine]) -> Vec<NumberedLine> {
    let mut added = difference
        .iter()
        .filter(|(line, _)| is_added(line))
        .filter_map(|(line, number)| Some((line, (*number)?)))
        .peekable();
    let mut lines: Vec<NumberedLine> = Vec::new();
    for (at, line) in text.lines().enumerate().take(MAX_WHOLE) {
        let number = at + 1;
        let line = match added.next_if(|(_, added)| *added == number) {
            Some((line, _)) => line.clone(),
            None => StyledLine::plain(" ")
                .with(Tone::Plain, line)
                .cut(MAX_COLUMNS),
        };
        lines.push((line, Some(number)));
    }
    let omitted = text.lines().count().saturating_sub(MAX_WHOLE);
    if omitted > 0 {
        let more = format!(
            "… {} more: w shows the changed ones",
            counted(omitted, "line")
        );
        lines.push((StyledLine::of(Tone::Warning, &more), None));
    }
    lines
}

fn is_added(line: &StyledLine) -> bool {
    line.text().starts_with('+')
}

fn is_changed(line: &StyledLine) -> bool {
    line.text().starts_with(['+', '-'])
}

#[cfg(test)]
mod tests;
