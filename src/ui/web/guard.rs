//! Who may look: whoever has the secret word of the address, by the name of this machine.
//!
//! A page of the web can make a browser ask anything of this machine, and a name of the web can
//! be made to lead here. Neither knows the word; the second has another name, and is refused
//! before anything is compared.

use crate::host::serve::{PageAnswer, PageRequest, plain};
use crate::host::token::is_same;
use crate::ui::html::layout::POLICY;

/// What is asked of each client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebGuard {
    /// The secret word.
    pub token: String,
    /// The port.
    pub port: u16,
}

/// What nobody who has the address reads.
const NOBODY: &str = "There is nothing here. The address that `teddy web` printed is whole only \
    with the secret word in it.\n";

impl WebGuard {
    /// Returns the address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Returns what stands behind the secret word.
    ///
    /// # Errors
    /// What is answered instead.
    pub fn inside<'a>(&self, asked: &'a PageRequest) -> Result<&'a str, PageAnswer> {
        let is_ours = |host: &str| {
            let names = ["127.0.0.1", "localhost"];
            names
                .iter()
                .any(|name| host.eq_ignore_ascii_case(&format!("{name}:{}", self.port)))
        };
        if !asked.host.as_deref().is_some_and(is_ours) {
            return Err(plain(
                403,
                "This server is asked by the name 127.0.0.1 only.\n",
            ));
        }

        let path = asked.path.strip_prefix('/').unwrap_or_default();
        let (token, rest) = path
            .split_once('/')
            .map_or((path, None), |(a, b)| (a, Some(b)));
        match (is_same(token, &self.token), rest) {
            (true, Some(rest)) => Ok(rest),
            (true, None) => Err(PageAnswer {
                headers: vec![("location", format!("/{}/", self.token))],
                ..plain(308, "")
            }),
            (false, _) => Err(plain(404, NOBODY)),
        }
    }
}

/// Adds what forbids a browser everything that no page of ours does.
pub fn guarded(mut answered: PageAnswer) -> PageAnswer {
    let headers = [
        (
            "content-security-policy",
            format!("{POLICY}; frame-ancestors 'none'"),
        ),
        ("x-content-type-options", "nosniff".to_owned()),
        ("x-frame-options", "DENY".to_owned()),
        ("referrer-policy", "no-referrer".to_owned()),
        ("cross-origin-resource-policy", "same-origin".to_owned()),
        ("cross-origin-opener-policy", "same-origin".to_owned()),
        ("cache-control", "no-store".to_owned()),
    ];
    answered.headers.extend(headers);
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what becomes of a request: what is inside, or the status.
    #[track_caller]
    fn check(host: Option<&str>, path: &str, expected: Result<&str, u16>) {
        let guard = WebGuard {
            token: "w0rd".to_owned(),
            port: 80,
        };
        let asked = PageRequest {
            path: path.to_owned(),
            query: String::new(),
            host: host.map(str::to_owned),
        };
        let found = guard.inside(&asked).map_err(|answered| answered.status);
        assert_eq!(found, expected, "{host:?} {path}");
    }

    #[test]
    fn only_the_whole_address_leads_inside() {
        let here = Some("127.0.0.1:80");
        check(here, "/w0rd/", Ok(""));
        check(here, "/w0rd/s/demo/1.html", Ok("s/demo/1.html"));
        check(Some("LOCALHOST:80"), "/w0rd/", Ok(""));
        check(here, "/w0rd", Err(308));
        check(here, "/w0rdy/", Err(404));
        check(here, "/W0RD/", Err(404));
        check(here, "//w0rd/", Err(404));
        check(here, "/", Err(404));
        check(here, "", Err(404));
    }

    #[test]
    fn another_name_leads_nowhere() {
        for host in [
            "evil.example",
            "evil.example:80",
            "127.0.0.1",
            "127.0.0.1:81",
            "localhost",
            "",
        ] {
            check(Some(host), "/w0rd/", Err(403));
        }
        check(None, "/w0rd/", Err(403));
    }
}
