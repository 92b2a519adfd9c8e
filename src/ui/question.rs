//! Lays out a question and its keys, breaking between keys if they do not fit.

use unicode_width::UnicodeWidthStr;

use super::style::StyledLine;

/// Returns the rows of a question. A question that does not fit has its keys on separate rows.
pub fn question_rows(question: &str, width: usize) -> Vec<String> {
    let question = StyledLine::plain(question).text();
    // One column stays free for the cursor.
    let fits = |text: &str| text.width() < width;
    let Some((asked, keys)) = question.split_once("? ").filter(|_| !fits(&question)) else {
        return vec![question];
    };
    let mut rows: Vec<String> = StyledLine::plain(&format!("{asked}?"))
        .fold(width)
        .iter()
        .map(StyledLine::text)
        .collect();

    for (at, key) in keys.split_inclusive(" / ").enumerate() {
        match rows.last_mut() {
            Some(row) if at > 0 && fits(&format!("{row}{key}")) => row.push_str(key),
            _ => rows.push(key.to_owned()),
        }
    }

    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(question: &str, width: usize, expected: &[&str]) {
        assert_eq!(question_rows(question, width), expected);
    }

    #[test]
    fn a_question_is_broken_between_its_keys() {
        let question =
            "Execute this plan? (a)pprove all / (r)eview full plan / (m)odify / (s)kip / (q)uit › ";
        check(question, 100, &[question]);
        check(
            question,
            80,
            &[
                "Execute this plan?",
                "(a)pprove all / (r)eview full plan / (m)odify / (s)kip / (q)uit › ",
            ],
        );
        check(
            question,
            40,
            &[
                "Execute this plan?",
                "(a)pprove all / (r)eview full plan / ",
                "(m)odify / (s)kip / (q)uit › ",
            ],
        );
        check(
            "Have you finished and saved it? (y/n) › ",
            20,
            &["Have you finished ", "↪ and saved it?", "(y/n) › "],
        );
    }

    #[test]
    fn what_deceives_is_visible() {
        check("Make a\u{1b}[2J?", 80, &["Make a\\u{1b}[2J?"]);
    }
}
