//! Detects secrets in a text: keys by their format, and random values that are assigned to a name
//! such as `api_token`.
//!
//! `SHAPES` is the only list of formats: snapshots, redaction and `teddy push` use it. Formats with
//! a fixed prefix, URLs with a password and headers with a credential follow the rules of gitleaks
//! (`config/gitleaks.toml`), which names the prefix, the alphabet and the length of each key. A
//! shape is searched for only if a text contains one of its marks, and one pass over the text finds
//! the marks of all shapes.
//!
//! Avoids false positives for common content: hashes, lock files, UUIDs, encoded images, minified
//! code, examples and values made of words. Takes linear time, and one pass if there is nothing to
//! find.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use KeyFilter::{Any, Credential, Password, Random};
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

use super::colorless::Colorless;
use super::{constant_regex, has_word};

struct KeyShape {
    name: &'static str,
    /// Every key of this format has one of these nearby.
    marks: &'static [&'static str],
    /// The group `key` is the secret part. Without that group all of it is.
    pattern: &'static str,
    filter: KeyFilter,
}

/// What a match must be besides.
#[derive(Clone, Copy)]
enum KeyFilter {
    /// Has digits and letters, as random strings do and identifiers usually don't.
    Random,
    /// Is not a placeholder, and not the name of the user in front of it.
    Password,
    /// A credential of an `Authorization` header.
    Credential,
    /// Anything: the rest of the pattern is specific enough.
    Any,
}

// A token can also follow an escape: `\n`, `%3A`, or a color of the terminal.
const START: &str =
    r"(?:(?-u:\b)|\\[nrtfb0]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]{0,16}m)";

// A PEM header with at least one line of the key; the header alone can be part of prose. Line ends
// can also be escaped as `\n`.
const PRIVATE_KEY: &str = concat!(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----",
    r"(?:(?:\s|\\r|\\n)+[A-Za-z-]{1,30}: [^\r\n\\]{0,200})*",
    r"(?:(?:\s|\\r|\\n)+[A-Za-z0-9+/=]{40,})+",
    r"(?:(?:\s|\\r|\\n)*[A-Za-z0-9+/=]{0,80}(?:\s|\\r|\\n)*(?:=[A-Za-z0-9+/]{4}(?:\s|\\r|\\n)*)?-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
);

const URL_PASSWORD: &str = concat!(
    r#"[A-Za-z][A-Za-z0-9+.-]{1,30}:(?:\\?/){2}[^\s/?#@:"'<>\\`{}$()]{0,80}"#,
    r#":(?P<key>[^\s/?#@"'<>\\`{}()]{3,200})@[A-Za-z0-9\[]"#,
);

const AUTHORIZATION: &str = concat!(
    r#"(?i)authorization\\{0,7}["'`]?\]?\s{0,4}(?:[:=,]|=>)\s{0,4}\\{0,7}["'`]?"#,
    r"(?:(?:bearer|basic|token|bot|apikey|api-key|negotiate)(?: {1,4}|:))?",
    r"(?P<key>[A-Za-z0-9+/=._~-]{8,})",
);

const KEY_HEADER: &str =
    r"(?i)[a-z][a-z-]{0,40}-(?:key|token|secret): ?(?P<key>[A-Za-z0-9+/=._~-]{16,})";

const CURL_USER: &str = concat!(
    r#"curl\b[^\n]{0,400}?\s(?:-u|--user)[ =]?\\{0,3}["']?[^\s"'$:{<\\]{1,80}"#,
    r#":(?P<key>[^\s"'$:{<\\]{3,128})"#,
);

/// If several match at the same place, the first one wins.
#[rustfmt::skip]
const SHAPES: &[KeyShape] = &[
    shape("private key", &["PRIVATE KEY"], PRIVATE_KEY),
    shape("age key", &["AGE-SECRET-KEY-1"], r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    shape("anthropic key", &["sk-"], r"sk-ant-[A-Za-z0-9_-]{20,}"),
    shape("openai key", &["sk-"],
        r"sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,}\b"),
    shape("aws key", &["AKIA", "ASIA", "ABIA", "ACCA"], r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    shape("aws bedrock key", &["ABSK", "bedrock-api-key-"],
        r"ABSK[A-Za-z0-9+/]{109,269}={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{40,}"),
    shape("github token", &["ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"],
        r"gh[opsur]_[A-Za-z0-9]{36,}\b|github_pat_[A-Za-z0-9_]{40,}"),
    shape("gitlab token",
        &["glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glft-", "glffct-", "glimt-", "glagent-",
            "gloas-", "glsoat-", "GR1348941"],
        r"gl(?:pat|ptt|dt|rt|cbt|ft|ffct|imt|agent|oas|soat)-[A-Za-z0-9_.-]{20,}|GR1348941[A-Za-z0-9_-]{20,}"),
    any("gitlab session", &["_gitlab_session="], r"_gitlab_session=(?P<key>[0-9a-z]{32})\b"),
    shape("slack token", &["xox", "xapp-"],
        r"xox[abeoprs][-.][A-Za-z0-9.-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,}"),
    any("slack webhook", &["hooks.slack.com"],
        r"(?:https?:(?:\\?/){2})?hooks\.slack(?:-gov)?\.com(?:\\?/)(?P<key>(?:services|workflows|triggers)(?:\\?/)[A-Za-z0-9+/\\]{30,80})"),
    any("discord webhook", &["/webhooks"],
        r"discord(?:app)?\.com(?:\\?/)api(?:\\?/)webhooks(?:\\?/)(?P<key>[0-9]{16,20}(?:\\?/)[A-Za-z0-9_-]{60,80})"),
    any("teams webhook", &["webhook.office.com"],
        r"[a-z0-9]+\.webhook\.office\.com(?:\\?/)(?P<key>webhookb2(?:\\?/)[A-Za-z0-9@/\\-]{60,})"),
    shape("google key", &["AIza"], r"AIza[A-Za-z0-9_-]{35}"),
    shape("google token", &["ya29.", "1//0"], r"ya29\.[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{38,}"),
    shape("google client secret", &["GOCSPX-"], r"GOCSPX-[A-Za-z0-9_-]{28}"),
    shape("json web token", &["eyJ"],
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    shape("json web token", &["ZXlK"], r"ZXlK[A-Za-z0-9+/=_-]{80,}"),
    shape("stripe key", &["k_live_", "k_test_", "k_prod_", "whsec_"],
        r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{20,}|whsec_[A-Za-z0-9+/]{32,}"),
    shape("npm token", &["npm_"], r"npm_[A-Za-z0-9]{36}\b"),
    any("npm login", &["_auth", "_password"],
        r#"(?:_authToken|_auth|_password) ?= ?"?(?P<key>[A-Za-z0-9+/=_-]{16,})"#),
    shape("pypi token", &["pypi-AgE"], r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    shape("crates.io token", &["cio"], r"cio[A-Za-z0-9]{32}\b"),
    shape("rubygems key", &["rubygems_"], r"rubygems_[a-f0-9]{48}\b"),
    shape("clojars token", &["CLOJARS_"], r"CLOJARS_[A-Za-z0-9]{60}\b"),
    any("nuget password", &["assword\""],
        r#"<add key="(?:ClearText)?Password"\s*value="(?P<key>[^"\s%$]{8,200})""#),
    shape("hugging face token", &["hf_", "api_org_"], r"(?:hf|api_org)_[A-Za-z0-9]{30,}\b"),
    shape("sendgrid key", &["SG."], r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    shape("sendinblue key", &["xkeysib-"], r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    shape("digitalocean token", &["_v1_"], r"do[opr]_v1_[a-f0-9]{64}\b"),
    shape("shopify token", &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}\b"),
    shape("telegram bot token", &[":A"], r"(?:bot)?(?P<key>[0-9]{8,16}:A[A-Za-z0-9_-]{34})\b"),
    shape("twilio key", &["SK"], r"SK[0-9a-f]{32}\b"),
    shape("mailgun key", &["ailgun", "AILGUN"],
        r"(?:key|pubkey)-[a-f0-9]{32}\b|[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}\b"),
    shape("mailchimp key", &["-us"], r"[a-f0-9]{32}-us[0-9]{1,2}\b"),
    shape("square token", &["sq0atp-", "sq0csp-", "EAAA"],
        r"sq0[ac][ts]p-[A-Za-z0-9_-]{22,60}|EAAA[A-Za-z0-9_-]{56,60}\b"),
    shape("facebook token", &["EAAM", "EAAC"],
        r"EAA[MC][A-Za-z0-9]{100,}|EAACEdEose0cBA[A-Za-z0-9]{20,}"),
    shape("hubspot token", &["pat-na", "pat-eu"],
        r"pat-(?:na|eu)[0-9]-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}\b"),
    shape("posthog key", &["phx_"], r"phx_[A-Za-z0-9_-]{40,}"),
    shape("replicate token", &["r8_"], r"r8_[A-Za-z0-9]{37}\b"),
    shape("azure secret", &["Q~"], r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    shape("azure key", &["AccountKey=", "SharedAccessKey="],
        r"(?:AccountKey|SharedAccessKey)=(?P<key>[A-Za-z0-9+/]{40,90}={0,2})"),
    shape("alibaba key", &["LTAI"], r"LTAI[A-Za-z0-9]{20}\b"),
    shape("atlassian token", &["ATATT3", "ATCTT3", "ATBB"],
        r"AT[AC]TT3[A-Za-z0-9_=-]{100,}|ATBB[A-Za-z0-9_=.-]{32,}"),
    shape("artifactory token", &["AKCp", "cmVmd"], r"AKCp[A-Za-z0-9]{69}\b|cmVmd[A-Za-z0-9]{59}\b"),
    shape("1password key", &["A3-", "ops_eyJ"],
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b|ops_eyJ[A-Za-z0-9+/]{100,}={0,3}"),
    shape("adobe secret", &["p8e-"], r"p8e-[A-Za-z0-9]{32}\b"),
    shape("airtable token", &["irtable", "AIRTABLE"], r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b"),
    shape("authress key", &[".acc_", ".acc-"],
        r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}"),
    shape("clickhouse key", &["4b1d"], r"4b1d[A-Za-z0-9]{38}\b"),
    shape("cloudflare key", &["v1.0-"], r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}\b"),
    shape("databricks token", &["dapi"], r"dapi[a-f0-9]{32}(?:-[0-9])?\b"),
    shape("docker hub token", &["dckr_"], r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{24,}"),
    shape("doppler token", &["dp."],
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}\b"),
    shape("duffel token", &["duffel_"], r"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}"),
    shape("dynatrace token", &["dt0c01."], r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}\b"),
    shape("easypost key", &["EZAK", "EZTK"], r"EZ[AT]K[A-Za-z0-9]{54}\b"),
    shape("figma token", &["figd_"], r"figd_[A-Za-z0-9_-]{40,}"),
    shape("flutterwave key", &["FLWSECK"], r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,40}(?:-X)?"),
    shape("fly.io token", &["fo1_", "fm1a_", "fm1r_", "fm2_"],
        r"fo1_[A-Za-z0-9_-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3}"),
    shape("frame.io token", &["fio-u-"], r"fio-u-[A-Za-z0-9_=-]{64}"),
    shape("grafana token", &["glc_", "glsa_", "eyJ"],
        r"glc_[A-Za-z0-9+/]{32,400}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|eyJrIjoi[A-Za-z0-9]{70,400}={0,3}"),
    shape("groq key", &["gsk_"], r"gsk_[A-Za-z0-9]{48,}\b"),
    shape("harness key", &["pat.", "sat."],
        r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}\b"),
    shape("hashicorp token", &["atlasv1", "hvs.", "hvb."],
        r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}|hv[bs]\.[A-Za-z0-9_-]{24,300}"),
    shape("heroku key", &["HRKU-AA"], r"HRKU-AA[A-Za-z0-9_-]{58}"),
    shape("infracost key", &["ico-"], r"ico-[A-Za-z0-9]{32}\b"),
    shape("intra42 secret", &["-s4t2"], r"[su]-s4t2(?:ud|af)-[a-f0-9]{64}\b"),
    shape("linear key", &["lin_api_", "lin_oauth_"], r"lin_(?:api|oauth)_[A-Za-z0-9]{40,}"),
    shape("maxmind key", &["_mmk"], r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b"),
    shape("new relic key", &["NRAK-", "NRII-", "NRJS-"],
        r"NRAK-[A-Za-z0-9]{27}\b|NRII-[A-Za-z0-9-]{32}|NRJS-[a-f0-9]{19}\b"),
    shape("notion token", &["ntn_"], r"ntn_[0-9]{11}[A-Za-z0-9]{35}\b"),
    shape("nvidia key", &["nvapi-"], r"nvapi-[A-Za-z0-9_-]{60,}"),
    shape("octopus key", &["API-"], r"API-[A-Z0-9]{26}\b"),
    shape("okta token", &["okta", "Okta", "OKTA"], r"00[A-Za-z0-9_-]{40}\b"),
    shape("openshift token", &["sha256~"], r"sha256~[A-Za-z0-9_-]{43}"),
    shape("perplexity key", &["pplx-"], r"pplx-[A-Za-z0-9]{48}\b"),
    shape("plaid token", &["access-"],
        r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    shape("planetscale key", &["pscale_"], r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{32,64}"),
    shape("postman key", &["PMAK-"], r"PMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}\b"),
    shape("prefect key", &["pnu_"], r"pnu_[A-Za-z0-9]{36}\b"),
    shape("pulumi token", &["pul-"], r"pul-[a-f0-9]{40}\b"),
    shape("readme key", &["rdme_"], r"rdme_[a-z0-9]{70}\b"),
    shape("scalingo token", &["tk-us-"], r"tk-us-[A-Za-z0-9_-]{48}"),
    shape("sentry token", &["sntrys_", "sntryu_"],
        r"sntrys_eyJ[A-Za-z0-9+/=_]{40,}|sntryu_[a-f0-9]{64}\b"),
    shape("settlemint token", &["sm_aat_", "sm_pat_", "sm_sat_"], r"sm_[aps]at_[A-Za-z0-9]{16}\b"),
    shape("shippo token", &["shippo_"], r"shippo_(?:live|test)_[A-Fa-f0-9]{40}\b"),
    shape("sonar token", &["squ_", "sqp_", "sqa_"], r"sq[apu]_[A-Za-z0-9]{40}\b"),
    shape("sourcegraph token", &["sgp_"], r"sgp_(?:(?:[A-Fa-f0-9]{16}|local)_)?[A-Fa-f0-9]{40}\b"),
    shape("supabase key", &["sbp_", "sb_secret_"],
        r"sbp_[a-f0-9]{40}\b|sb_secret_[A-Za-z0-9_-]{22,}"),
    shape("tailscale key", &["tskey-"],
        r"tskey-(?:api|auth|client|webhook)-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),
    shape("typeform token", &["tfp_"], r"tfp_[A-Za-z0-9_.=-]{40,}"),
    shape("xai key", &["xai-"], r"xai-[A-Za-z0-9]{60,}\b"),
    shape("yandex key", &["AQVN", "t1."],
        r"AQVN[A-Za-z0-9_-]{35,38}|t1\.[A-Za-z0-9_-]{30,}={0,2}\.[A-Za-z0-9_-]{86}={0,2}"),
    KeyShape { filter: Password, ..shape("password in a url", &["://", r":\/\/"], URL_PASSWORD) },
    shape("token in a url", &["://", r":\/\/"],
        r"https?:(?:\\?/){2}(?P<key>[A-Za-z0-9_-]{24,120})(?::x-oauth-basic)?@[A-Za-z0-9]"),
    KeyShape { filter: Credential, ..shape("authorization header", &["uthorization", "UTHORIZATION"], AUTHORIZATION) },
    KeyShape { filter: Credential, ..shape("key in a header",
        &["-Key:", "-key:", "-KEY:", "-Token:", "-token:", "-TOKEN:", "-Secret:", "-secret:"],
        KEY_HEADER) },
    KeyShape { filter: Password, ..shape("password for curl", &["curl"], CURL_USER) },
];

const fn shape(
    name: &'static str,
    marks: &'static [&'static str],
    pattern: &'static str,
) -> KeyShape {
    KeyShape {
        name,
        marks,
        pattern,
        filter: Random,
    }
}

const fn any(
    name: &'static str,
    marks: &'static [&'static str],
    pattern: &'static str,
) -> KeyShape {
    KeyShape {
        filter: Any,
        ..shape(name, marks, pattern)
    }
}

struct Marks {
    // An automaton of all states takes ten times as long to build as most texts take to search.
    automaton: AhoCorasick,
    /// The shape of each mark.
    shapes: Vec<usize>,
}

static MARKS: LazyLock<Marks> = LazyLock::new(|| {
    let marks = SHAPES.iter().flat_map(|shape| shape.marks);
    let shapes = SHAPES.iter().enumerate();
    let shapes = shapes.flat_map(|(at, shape)| shape.marks.iter().map(move |_| at));
    let mut builder = AhoCorasick::builder();
    builder.kind(Some(AhoCorasickKind::ContiguousNFA));
    Marks {
        automaton: builder.build(marks).expect("the marks are few and short"),
        shapes: shapes.collect(),
    }
});

impl KeyShape {
    fn regex(&self) -> Regex {
        let pattern = self.pattern.replace(r"\b", r"(?-u:\b)");
        // A pattern that begins with punctuation needs no boundary in front.
        let start = if pattern.starts_with(['-', '<']) {
            ""
        } else {
            START
        };
        let full = match pattern.contains("(?P<key>") {
            true => format!("{start}(?:{pattern})"),
            false => format!("{start}(?P<key>{pattern})"),
        };
        constant_regex(&full)
    }
}

static REGEXES: [OnceLock<Regex>; SHAPES.len()] = [const { OnceLock::new() }; SHAPES.len()];

/// Returns the keys in a text in order, without overlaps, each with the name of its shape.
fn key_shapes(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut all = shapes_in(text);
    let Some(colorless) = Colorless::of(text) else {
        return all;
    };
    let hits = shapes_in(&colorless.text).into_iter();
    all.extend(hits.map(|(shape, range)| (shape, colorless.original_range(&range))));
    all.sort_by_key(|(_, range)| range.start);
    all.dedup_by(|(_, next), (_, last)| {
        let meets = next.start < last.end;
        if meets {
            last.end = last.end.max(next.end);
        }
        meets
    });
    all
}

fn shapes_in(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut hits: Vec<(usize, Range<usize>)> = Vec::new();
    for at in shapes_with_marks(text) {
        let regex = REGEXES[at].get_or_init(|| SHAPES[at].regex());
        for captures in regex.captures_iter(text) {
            let Some(key) = captures.name("key") else {
                continue;
            };
            let before = &text[captures.get(0).map_or(0, |all| all.start())..key.start()];
            if SHAPES[at].filter.accepts(key.as_str(), before) {
                hits.push((at, key.range()));
            }
        }
    }

    hits.sort_unstable_by_key(|(at, range)| (range.start, *at));
    let mut end = 0;
    hits.retain(|(_, range)| {
        let is_apart = range.start >= end;
        if is_apart {
            end = range.end;
        }
        is_apart
    });
    let ranges = hits.into_iter();
    ranges.map(|(at, range)| (SHAPES[at].name, range)).collect()
}

fn shapes_with_marks(text: &str) -> Vec<usize> {
    let mut is_marked = [false; SHAPES.len()];
    for mark in MARKS.automaton.find_overlapping_iter(text) {
        is_marked[MARKS.shapes[mark.pattern().as_usize()]] = true;
    }
    (0..SHAPES.len()).filter(|&at| is_marked[at]).collect()
}

impl KeyFilter {
    fn accepts(self, key: &str, before: &str) -> bool {
        match self {
            Any => true,
            Random => is_random(key),
            Password => is_password(key, before),
            Credential => is_credential(key, before),
        }
    }
}

fn is_random(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits >= 2 && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Excludes what documentation writes in the place of a password.
fn is_password(password: &str, before: &str) -> bool {
    const PLACEHOLDERS: &str = "\
        pass passwd password passw0rd pwd pw secret token key user username login changeme \
        change-me change_me changeit admin root guest example sample test testing dummy fake \
        foo bar baz abc none null port mypassword your_password";
    let user = before.trim_end_matches(':');
    let user = &user[user.rfind(['/', ' ', '"', '\'']).map_or(0, |at| at + 1)..];
    let lower = password.to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
    let is_template = lower.starts_with(['$', '%', '<', '{', '[', '*', '.'])
        || lower.contains("${")
        || lower.contains("{{")
        || lower.contains("redacted")
        || lower.starts_with("your")
        || lower.starts_with("my-")
        || lower.starts_with("my_");
    // Only a port, as in `scheme://[::1]:8080@`, or one repeated letter.
    let first = lower.bytes().next().unwrap_or_default();
    let is_one = lower.bytes().all(|byte| byte == first);
    lower.bytes().any(is_plain)
        && !has_word(PLACEHOLDERS, &lower)
        && !is_template
        && !is_one
        && !lower.eq_ignore_ascii_case(user)
}

fn is_credential(credential: &str, before: &str) -> bool {
    let scheme = before.trim_end_matches([' ', ':']).to_ascii_lowercase();
    if scheme.ends_with("basic") {
        // Encodes `user:password`, and words of prose don't.
        let decoded = decoded(credential).unwrap_or_default();
        return decoded.contains(&b':') && decoded.iter().all(|byte| (0x20..0x7f).contains(byte));
    }
    let lower = credential.to_ascii_lowercase();
    let placeholders = [
        "example", "your", "token_", "xxxx", "redacted", "..", "dummy", "fake",
    ];
    let has_scheme = ["bearer", "token", "bot", "apikey", "api-key", "negotiate"];
    let has_scheme = has_scheme.iter().any(|word| scheme.ends_with(word));
    is_random(credential)
        && credential.len() >= if has_scheme { 12 } else { 20 }
        && !placeholders.iter().any(|word| lower.contains(word))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

const ASSIGNED: &str = "value assigned to a secret's name";

// A shorter value can be a word.
const MIN_ASSIGNED: usize = 20;

// A longer value is rather an embedded file.
const MAX_ASSIGNED: usize = 512;
const MAX_QUOTED_KEY: usize = 128;

// A name that ends with a word for a secret, and its value: in quotes, or up to the end of the
// line. Unquoted code does not match, because it continues after a name. Without an upper bound the
// pattern is compiled three times faster; `is_random_value` has the bound.
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    constant_regex(concat!(
        r"(?i-u)(?:secret|passw(?:or)?d|passphrase|token|credentials?|",
        r"(?:api|access|auth|secret|private|encryption|signing|account|master)[_-]?key)",
        r#"(?:[_-]?(?:base|value))?\\{0,7}["'`]?\s{0,8}(?::=|=>|=|:)\s{0,8}(?:bearer )?"#,
        // JSON in a string has a backslash before each quote.
        r#"(?:\\{1,7}["']([!-!#-&(-\[\]-~]{20,})\\{1,7}["']|"([!-!#-~]{20,})"|'([!-&(-~]{20,})'|([A-Za-z0-9_+/=.~-]{20,})[ \t]*(?:[\r\n]|\z))"#,
    ))
});

static QUOTED_KEY: LazyLock<Regex> = LazyLock::new(|| {
    constant_regex(
        r#"["']key\\{0,7}["']\s{0,8}:\s{0,8}\\{0,7}["']([A-Za-z0-9_+/=-]{24,})\\{0,7}["']"#,
    )
});

// One of these is in each name that the patterns match. Most texts have none, and the patterns take
// milliseconds to compile.
static NAMES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true);
    let names = builder.build("secret passw passphrase token credential key".split(' '));
    names.expect("the names are constants that the tests build")
});

/// Returns the kind of the first secret in a text.
pub fn find_secret(text: &str) -> Option<&'static str> {
    let shaped = shaped(text).next().map(|(shape, _)| shape);
    shaped.or_else(|| assigned(text).next().map(|_| ASSIGNED))
}

/// Returns all secrets in a text, with their kinds.
pub(super) fn secret_ranges(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let assigned = assigned(text).map(|range| (ASSIGNED, range));
    shaped(text).chain(assigned).collect()
}

fn shaped(text: &str) -> impl Iterator<Item = (&'static str, Range<usize>)> {
    let shapes = key_shapes(text).into_iter();
    shapes.filter(|(_, range)| !text[range.clone()].contains("EXAMPLE"))
}

fn assigned(text: &str) -> impl Iterator<Item = Range<usize>> {
    let values = NAMES.is_match(text).then(|| assigned_to_names(text));
    values.into_iter().flatten()
}

fn assigned_to_names(text: &str) -> impl Iterator<Item = Range<usize>> {
    let assignments = ASSIGNMENT
        .captures_iter(text)
        .filter_map(|captures| captures.iter().skip(1).flatten().next())
        .filter(|value| is_random_value(value.as_str()));
    // `key` alone often names a hash, which has letters of one case.
    let keys = QUOTED_KEY
        .captures_iter(text)
        .filter_map(|captures| captures.get(1))
        .filter(|value| value.len() <= MAX_QUOTED_KEY)
        .filter(|value| is_random_value(value.as_str()) && has_both_cases(value.as_str()));
    assignments.chain(keys).map(|value| value.range())
}

fn has_both_cases(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_uppercase())
        && value.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn is_random_value(value: &str) -> bool {
    if !(MIN_ASSIGNED..=MAX_ASSIGNED).contains(&value.len()) || is_uuid(value) || is_example(value)
    {
        return false;
    }

    let plain: Vec<u8> = value.bytes().filter(u8::is_ascii_alphanumeric).collect();
    let digits = plain.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = plain.len() - digits;
    if digits < 2 || letters < 2 || plain.len() * 5 < value.len() * 3 {
        return false;
    }

    // Values typed by hand are often sequences or repetitions.
    let is_step = |pair: &&[u8]| pair[1].wrapping_sub(pair[0]) <= 1;
    let steps = plain.windows(2).filter(is_step).count();

    // Words and numbers are runs of one class, even if each word starts with a capital. In random
    // values, every second or third character starts a new run. If all letters have the same case,
    // compare with the number of changes that the counts of digits and letters predict.
    let classes: Vec<CharClass> = plain.iter().map(|byte| CharClass::of(*byte)).collect();
    let is_change =
        |pair: &&[CharClass]| pair[0] != pair[1] && *pair != [CharClass::Upper, CharClass::Lower];
    let changes = classes.windows(2).filter(is_change).count();
    let is_mixed = classes.contains(&CharClass::Upper) && classes.contains(&CharClass::Lower);
    let as_expected = !is_mixed && digits >= 4 && 2 * changes * plain.len() >= 3 * digits * letters;

    steps * 3 < plain.len() && (changes * 10 >= plain.len() * 3 || as_expected)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Digit,
    Lower,
    Upper,
}

impl CharClass {
    fn of(byte: u8) -> CharClass {
        match byte {
            b'0'..=b'9' => CharClass::Digit,
            b'A'..=b'Z' => CharClass::Upper,
            _ => CharClass::Lower,
        }
    }
}

fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_example(value: &str) -> bool {
    const PARTS: &str =
        "example sample dummy placeholder changeme fake test xxxx your :// ${ {{ < .. %2";

    let value = value.to_ascii_lowercase();
    PARTS.split(' ').any(|part| value.contains(part))
}

// Removes keys from text that is recorded or displayed, recognized by their format.
//
// The formats are specific, so ordinary code, hashes and names are not affected. Takes linear
// time.

/// Minimum length of an exact value. Shorter ones could match ordinary words.
pub const MIN_REDACTED: usize = 8;

/// Replaces keys by `[redacted <shape>]`.
pub fn redact(text: &str) -> Cow<'_, str> {
    let (mut output, mut end) = (String::new(), 0);
    for (shape, range) in key_shapes(text) {
        output.push_str(&text[end..range.start]);
        output.push_str("[redacted ");
        output.push_str(shape);
        output.push(']');
        end = range.end;
    }
    match end {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(output + &text[end..]),
    }
}

/// Replaces keys and these exact values.
pub fn redact_values<'a>(text: &'a str, values: &[&str]) -> Cow<'a, str> {
    match replace_values(text, values) {
        Cow::Borrowed(text) => redact(text),
        Cow::Owned(text) => Cow::Owned(redact(&text).into_owned()),
    }
}

/// Replaces these exact values only, where a key by its format can also be an id.
pub fn replace_values<'a>(text: &'a str, values: &[&str]) -> Cow<'a, str> {
    let mut redacted = Cow::Borrowed(text);
    for value in values.iter().filter(|value| value.len() >= MIN_REDACTED) {
        if redacted.contains(value) {
            redacted = Cow::Owned(redacted.replace(value, "[redacted key]"));
        }
    }
    redacted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random characters. Keys are assembled here, so that scanners do not report this file.
    const RANDOM: &str = "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs";

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(find_secret(text), expected, "for {text}");
    }

    #[test]
    fn promise_b7_a_key_is_known_by_its_shape() {
        check(
            &format!("x = \"ghp_{RANDOM}{RANDOM}\""),
            Some("github token"),
        );
        check(&format!("see AKIA{}", "QX7LM2VT8RB5NW4Y"), Some("aws key"));
        check("see AKIAIOSFODNN7EXAMPLE", None);
    }

    #[test]
    fn promise_b7_a_random_value_of_a_secrets_name_is_one() {
        let hex = "0f3a9c5e7b1d2864f0a5c39e8d7b6142";
        for text in [
            format!("API_TOKEN={RANDOM}"),
            format!("export API_TOKEN={RANDOM}\r\nX=1"),
            format!("{{ \"clientSecret\": \"{RANDOM}\" }}"),
            format!("let password = '{RANDOM}';"),
            format!("aws_secret_access_key = {RANDOM}/x+Y8"),
            format!("  secret_key_base: {hex}{hex}\n"),
            format!("SECRET_KEY = 'django-insecure-#{RANDOM}!@'"),
            format!("auth_token := \"{hex}\""),
            format!("token: bearer {RANDOM}\n"),
            format!(r#""{{\"api_key\":\"{RANDOM}\"}}""#),
            format!(r#"{{\\\"key\\\": \\\"{RANDOM}\\\"}}"#),
        ] {
            check(&text, Some(ASSIGNED));
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_an_embedded_file() {
        for (length, expected) in [(512, Some(ASSIGNED)), (513, None)] {
            let value = &RANDOM.repeat(17)[..length];
            check(&format!("API_TOKEN={value}"), expected);
            check(&format!("{{ \"clientSecret\": \"{value}\" }}"), expected);
            check(&format!("let password = '{value}';"), expected);
            check(&format!(r#""{{\"api_key\":\"{value}\"}}""#), expected);
        }
        for (length, expected) in [(128, Some(ASSIGNED)), (129, None)] {
            let value = &RANDOM.repeat(17)[..length];
            check(&format!(r#"{{"key": "{value}"}}"#), expected);
        }
    }

    #[test]
    fn promise_b7_what_repositories_are_full_of_is_none() {
        let hex = "0f3a9c5e7b1d2864f0a5c39e8d7b6142";
        for text in [
            format!("checksum = \"{hex}\"\nsha256: {hex}{hex}"),
            format!("\"integrity\": \"sha512-{RANDOM}{RANDOM}==\""),
            format!("public_key = \"{RANDOM}\""),
            format!("\"key\": \"{hex}{hex}\""),
            format!("password_hash = \"{hex}\""),
            format!("token_url = \"https://a.example/{RANDOM}\""),
            format!("src=\"data:image/png;base64,{RANDOM}{RANDOM}\""),
            "client_secret: 550e8400-e29b-41d4-a716-446655440000".to_owned(),
            "let token = next_token_of_the_stream(2, 17);".to_owned(),
            "token: NonEmptyMaxLength64String\n".to_owned(),
            "resetPassword: \"/v1/accounts:resetPassword2026\"".to_owned(),
            "password = \"correct-horse-battery-staple-42\"".to_owned(),
            "api_key = \"0123456789abcdef0123456789abcdef\"".to_owned(),
            format!("api_key = \"your-key-{RANDOM}\""),
            "token: ${{ secrets.GITHUB_TOKEN_2026_A1B2 }}".to_owned(),
            "password: \"%20!%22$%&'()*+,-.%2F09%3A%3B%3C%3D\"".to_owned(),
            format!("secret = \"{}\"", RANDOM.repeat(20)),
        ] {
            check(&text, None);
        }
    }

    #[test]
    fn a_text_full_of_openings_takes_no_longer_than_its_length() {
        let start = std::time::Instant::now();
        for unit in [
            "token = ",
            "secretsecret_key:=",
            "password=\"",
            "token='a1B2c3D4e5F6",
        ] {
            check(&unit.repeat((1 << 20) / unit.len()), None);
        }
        assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    }
}

#[cfg(test)]
mod redaction_tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(redact(text), expected);
    }

    /// Returns random-looking text. Keys are assembled here, so that scanners do not report this
    /// file.
    fn random(length: usize) -> String {
        "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs"
            .chars()
            .cycle()
            .take(length)
            .collect()
    }

    #[test]
    fn each_shape_is_named() {
        for (key, shape) in [
            (format!("sk-ant-api03-{}", random(80)), "anthropic key"),
            (format!("sk-proj-{}", random(48)), "openai key"),
            (format!("sk-{}", random(48)), "openai key"),
            (
                format!("AKIA{}", &random(40).to_uppercase()[..16]),
                "aws key",
            ),
            (format!("ghp_{}", random(36)), "github token"),
            (format!("github_pat_{}", random(70)), "github token"),
            (format!("glpat-{}", random(20)), "gitlab token"),
            (format!("xoxb-{}", random(30)), "slack token"),
            (format!("AIza{}", random(35)), "google key"),
            (
                format!("eyJ{}.eyJ{}.{}", random(20), random(40), random(43)),
                "json web token",
            ),
            (format!("sk_live_{}", random(24)), "stripe key"),
            (format!("hf_{}", random(34)), "hugging face token"),
        ] {
            check(
                &format!("key = \"{key}\";\n"),
                &format!("key = \"[redacted {shape}]\";\n"),
            );
        }
    }

    #[test]
    fn a_private_key_goes_as_a_whole() {
        let body = format!("{}\n{}\n{}==", random(64), random(64), random(20));
        let key = format!(
            "-----BEGIN OPENSSH {0}-----\n{body}\n-----END OPENSSH {0}-----",
            "PRIVATE KEY"
        );
        check(&format!("a\n{key}\nb\n"), "a\n[redacted private key]\nb\n");
        check(&key.replace('\n', "\\n"), "[redacted private key]");
        check(&key.replace('\n', "\r\n"), "[redacted private key]");
        check(
            &format!("-----BEGIN RSA {}-----\n{}\n", "PRIVATE KEY", random(64)),
            "[redacted private key]\n",
        );
    }

    #[test]
    fn ordinary_text_stays() {
        let header = format!("-----BEGIN {}-----", "PRIVATE KEY");
        for text in [
            "commit 0676b58f1d2c3b4a59687746352413021f0e9d8c",
            "sha512-oRkSZ1Q3ZsIvCHvbrN5ZQyYvn3bUzVJ8WqPYzCtXbS7MZcGd0u0CVqv0fOQBcR2Y8SIGjqMO4DsdvA7yzfRmJQ==",
            "class=\"sk-folding-cube sk-circle-fade-dot\" sk-learn",
            "task-1234567890123456789012345678901234567890",
            "import sklearn; risk-abcdefghijklmnopqrstuvwxyzabcdefghij",
            "if text.contains(\"eyJ\") { glpat-please_use_a_token_here }",
            "550e8400-e29b-41d4-a716-446655440000",
            &format!(
                "if line == \"{header}\" {{ inside = true }} else if line == \"-----END PRIVATE KEY-----\" {{ inside = false }}"
            ),
        ] {
            check(text, text);
            assert!(matches!(redact(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn exact_values_go_wherever_they_stand() {
        let got = redact_values(
            "Bearer hunter2-hunter2, again hunter2-hunter2; pin 1234",
            &["hunter2-hunter2", "1234"],
        );
        assert_eq!(got, "Bearer [redacted key], again [redacted key]; pin 1234");
    }

    #[test]
    fn a_text_full_of_openings_takes_no_longer_than_its_length() {
        let header = format!("-----BEGIN {}-----\n", "PRIVATE KEY");
        let text = format!(
            "{}{}",
            header.repeat(40_000),
            "eyJaaaaaaaaaaaa.".repeat(60_000)
        );
        let start = std::time::Instant::now();
        check(&text, &text);
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }

    proptest! {
        #[test]
        fn no_text_breaks_it_and_twice_is_once(text in "(sk-|ghp_|AKIA|eyJ|-----BEGIN PRIVATE KEY-----|[A-Za-z0-9._\\n-]{1,40}|\\PC){0,12}") {
            let once = redact(&text).into_owned();
            prop_assert_eq!(redact(&once), once.as_str());
        }

        #[test]
        fn a_key_is_found_between_any_words(before in "[ -,\\PC]{0,20}[ \"'=:]", after in "[ \"';\\n][ -~]{0,20}") {
            let key = format!("ghp_{}", random(36));
            let text = format!("{before}{key}{after}");
            prop_assert!(!redact(&text).contains(&key));
        }
    }
}

#[cfg(test)]
mod key_shape_tests {
    use super::*;

    /// Returns random-looking text of an alphabet. Keys are assembled here, so that scanners do not
    /// report this file.
    fn random(alphabet: &str, length: usize) -> String {
        const LETTERS: &str = "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs";
        let letters = match alphabet {
            "hex" => LETTERS
                .chars()
                .filter(char::is_ascii_hexdigit)
                .collect::<String>(),
            _ => LETTERS.to_owned(),
        };
        let cased = match alphabet {
            "upper" => letters.to_ascii_uppercase(),
            "lower" | "hex" => letters.to_ascii_lowercase(),
            _ => letters,
        };
        cased.chars().cycle().take(length).collect()
    }

    /// Fills a template: `{any:40}` stands for 40 random characters of the alphabet.
    fn filled(template: &str) -> String {
        let mut text = String::new();
        let mut remaining = template;
        while let Some((before, after)) = remaining.split_once('{') {
            let (blank, after) = after.split_once('}').unwrap();
            let (alphabet, length) = blank.split_once(':').unwrap();
            text += before;
            text += &random(alphabet, length.parse().unwrap());
            remaining = after;
        }
        text + remaining
    }

    /// Made-up keys: a prefix of the rule set, and random characters of its alphabet and length.
    const MADE_UP: &[(&str, &str)] = &[
        ("age key", "AGE-SECRET-KEY-1{upper:58}"),
        ("anthropic key", "sk-ant-api03-{any:93}AA"),
        ("openai key", "sk-proj-{any:74}T3BlbkFJ{any:74}"),
        ("aws key", "ABIA{upper:16}"),
        ("aws bedrock key", "ABSK{any:120}"),
        ("github token", "ghr_{any:36}"),
        ("gitlab token", "glrt-{any:20}"),
        ("gitlab token", "GR1348941{any:20}"),
        ("gitlab session", "_gitlab_session={lower:32}"),
        ("slack token", "xoxb-123456789012-1234567890123{any:24}"),
        ("slack token", "xoxe.xoxb-1-{upper:163}"),
        (
            "slack webhook",
            "https://hooks.slack.com/services/T{upper:10}/B{upper:10}/{any:24}",
        ),
        ("slack webhook", "hooks.slack.com/workflows/{any:46}"),
        (
            "discord webhook",
            "https://discord.com/api/webhooks/123456789012345678/{any:68}",
        ),
        ("google key", "AIza{any:35}"),
        ("google token", "ya29.{any:60}"),
        ("google client secret", "GOCSPX-{any:28}"),
        ("json web token", "eyJ{any:20}.eyJ{any:40}.{any:43}"),
        ("stripe key", "sk_test_{any:24}"),
        ("npm token", "npm_{any:36}"),
        (
            "npm login",
            "//registry.npmjs.org/:_authToken=550e8400-e29b-41d4-a716-446655440000",
        ),
        ("pypi token", "pypi-AgEIcHlwaS5vcmc{any:60}"),
        ("rubygems key", "rubygems_{hex:48}"),
        ("hugging face token", "hf_{any:34}"),
        ("sendgrid key", "SG.{any:22}.{any:43}"),
        ("digitalocean token", "dop_v1_{hex:64}"),
        ("shopify token", "shpat_{hex:32}"),
        ("shopify token", "shpss_{hex:32}"),
        ("telegram bot token", "123456789:AA{any:33}"),
        (
            "telegram bot token",
            "https://api.telegram.org/bot123456789:AA{any:33}/getMe",
        ),
        ("twilio key", "SK{hex:32}"),
        ("mailchimp key", "{hex:32}-us12"),
        ("square token", "sq0atp-{any:22}"),
        ("azure secret", "{any:3}8Q~{any:34}"),
        ("atlassian token", "ATATT3{any:186}"),
        (
            "1password key",
            "A3-{upper:6}-{upper:11}-{upper:5}-{upper:5}-{upper:5}",
        ),
        ("databricks token", "dapi{hex:32}"),
        ("doppler token", "dp.pt.{lower:43}"),
        ("dynatrace token", "dt0c01.{upper:24}.{upper:64}"),
        ("fly.io token", "fm2_{any:100}"),
        ("grafana token", "glsa_{any:32}_{hex:8}"),
        ("hashicorp token", "{any:14}.atlasv1.{any:64}"),
        ("hashicorp token", "hvs.{any:95}"),
        ("heroku key", "HRKU-AA{any:58}"),
        ("linear key", "lin_api_{lower:40}"),
        ("maxmind key", "{any:6}_{any:29}_mmk"),
        ("new relic key", "NRAK-{upper:27}"),
        ("notion token", "ntn_12345678901{any:35}"),
        ("facebook token", "EAACEdEose0cBA{any:40}"),
        (
            "hubspot token",
            "pat-na1-{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}",
        ),
        ("posthog key", "phx_{any:43}"),
        ("replicate token", "r8_{any:37}"),
        ("openshift token", "sha256~{any:43}"),
        ("perplexity key", "pplx-{any:48}"),
        ("planetscale key", "pscale_tkn_{any:43}"),
        ("postman key", "PMAK-{hex:24}-{hex:34}"),
        ("pulumi token", "pul-{hex:40}"),
        ("sentry token", "sntryu_{hex:64}"),
        ("settlemint token", "sm_aat_{any:16}"),
        ("shippo token", "shippo_live_{hex:40}"),
        ("sourcegraph token", "sgp_{hex:16}_{hex:40}"),
        ("typeform token", "tfp_{any:59}"),
        (
            "password in a url",
            "postgres://app:hunter2@db.example.com/x",
        ),
        (
            "password in a url",
            "https://ada:s3cr%40t@example.com/x.git",
        ),
        ("password in a url", "redis://:hunter2@cache:6379"),
        ("token in a url", "https://{any:40}@git.example.com/x.git"),
        ("authorization header", "Authorization: Bearer {any:32}"),
        (
            "authorization header",
            "authorization: Basic YWRhOmh1bnRlcjI=",
        ),
        ("authorization header", "Authorization: token {hex:40}"),
        ("key in a header", "X-Api-Key: {any:32}"),
        ("password for curl", "curl -s -u ada:hunter2 localhost"),
    ];

    #[test]
    fn made_up_keys_of_each_rule_are_found_in_every_surrounding() {
        for (name, template) in MADE_UP {
            let key = filled(template);
            for text in [
                key.clone(),
                format!("export X={key}\n"),
                format!("x: \"{key}\", y"),
                format!("{{\\\"text\\\":\\\"{key}\\\"}}"),
                format!("first\\n{key}\\nlast"),
                format!("\u{1b}[32m{key}\u{1b}[0m"),
            ] {
                let hits = key_shapes(&text);
                let names: Vec<&str> = hits.iter().map(|(name, _)| *name).collect();
                assert!(names.contains(name), "{name} in {text}: {names:?}");
            }
        }
    }

    #[test]
    fn a_key_in_escaped_json_is_found_without_its_quotes() {
        let value = random("any", 32);
        let text = format!(r#""{{\"Authorization\":\"Bearer {value}\"}}""#);
        let hits = key_shapes(&text);
        assert_eq!(hits.len(), 1);
        assert_eq!(text[hits[0].1.clone()], value);
    }

    #[test]
    fn placeholders_and_words_are_no_keys() {
        for text in [
            "https://user:password@example.com postgres://postgres:postgres@localhost/x",
            "mysql://root:${DB_PASSWORD}@db amqp://guest:guest@mq ftp://user:<password>@x",
            "http://[::1]:8080 http://localhost:3000/@scope/x https://a.example:443/x@y",
            "Authorization: Bearer $TOKEN; Authorization: Bearer <token>",
            "Authorization: Bearer YOUR_ACCESS_TOKEN_123; Authorization: Basic authentication",
            "authorization: required; Authorization: `Bearer ${token}`",
            "hooks.slack.com/services/ shpat_ hf_hub_download_with_tokenizer_from_pretrained",
            "npm_config_cache npm_lifecycle_event ya29. GOCSPX- xoxb-your-token-goes-here",
            "x-request-key: 550e8400 curl -u $USER:$PASS https://example.org",
            "sha256~ 12345:Abc glc_ glsa_ sk_test_ pat.length sat.x",
            "sha512-oRkSZ1Q3ZsIvCHvbrN5ZQyYvn3bUzVJ8WqPYzCtXbS7MZcGd0u0CVqv0fOQBcR2Y8SIGjqMO4DsdvA7yzfRmJQ==",
            "0676b58f1d2c3b4a59687746352413021f0e9d8c 550e8400-e29b-41d4-a716-446655440000",
            "[redacted password in a url] https://ada:[redacted password in a url]@x",
        ] {
            assert_eq!(key_shapes(text), [], "{text}");
        }
    }

    #[test]
    fn every_shape_has_marks_of_two_characters_or_more() {
        for shape in SHAPES {
            assert!(!shape.marks.is_empty(), "{}", shape.name);
            assert!(shape.marks.iter().all(|mark| mark.len() > 1));
        }
    }
}
