//! Mistakes in the documents of a change, with line numbers.

use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document is unusable.
    High,
    /// Usable but incomplete.
    Low,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub file: String,
    /// From 1.
    pub line: usize,
    pub severity: Severity,
    /// What is wrong and how to fix it.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.severity == Severity::High {
            "error"
        } else {
            "warning"
        };
        write!(f, "{}:{}: {word}: {}", self.file, self.line, self.message)
    }
}

#[derive(Debug)]
pub struct Findings<'a> {
    file: &'a str,
    list: Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub fn of(file: &'a str) -> Findings<'a> {
        Findings {
            file,
            list: Vec::new(),
        }
    }

    /// Makes the document unusable.
    pub fn high(&mut self, line: usize, message: impl Into<String>) {
        self.add(Severity::High, line, message.into());
    }

    pub fn low(&mut self, line: usize, message: impl Into<String>) {
        self.add(Severity::Low, line, message.into());
    }

    fn add(&mut self, severity: Severity, line: usize, message: String) {
        self.list.push(Finding {
            file: self.file.to_owned(),
            line: line.max(1),
            severity,
            message,
        });
    }

    /// By line.
    pub fn into_sorted(mut self) -> Vec<Finding> {
        self.list.sort_by_key(|finding| finding.line);
        self.list
    }
}

pub fn is_usable(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.severity != Severity::High)
}
