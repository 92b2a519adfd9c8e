//! The pages of `teddy web` in headless Chromium, driven by chromedriver.
//!
//! Without them (`apt-get install chromium chromium-driver`), the tests print a line and pass.

use std::borrow::Cow;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;
use crate::support::web::{self, Web};

/// Path on Debian.
const DRIVER: &str = "/usr/bin/chromedriver";
const PATIENCE: Duration = Duration::from_secs(60);
/// Key of an element's id in the WebDriver protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Closed when dropped.
struct Browser {
    driver: Child,
    port: u16,
    /// URL path of the WebDriver session.
    session: String,
    /// User data directory.
    profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a window of this size. `None` without Chromium.
    #[allow(
        clippy::print_stderr,
        reason = "whoever runs the tests is to see that some do nothing"
    )]
    fn open((width, height): (u32, u32)) -> Option<Browser> {
        if !Path::new(DRIVER).exists() {
            eprintln!("SKIPPED: there is no {DRIVER}, so no page is tried in a browser");
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let mut driver = teddy::host::process::command(DRIVER)
            .args(["--port=0", "--log-level=SEVERE"])
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(driver.stdout.take().unwrap());
        let port = said.lines().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        let mut browser = Browser {
            driver,
            port: port.unwrap(),
            session: String::new(),
            profile,
        };

        let data = browser.profile.path().join("data");
        let mut flags = vec![
            "--headless".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--hide-scrollbars".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
        ];
        flags.push(format!("--user-data-dir={}", data.display()));
        flags.push(format!("--window-size={width},{height}"));
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": flags},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let made = browser.send("POST", "/session", &wanted);
        browser.session = format!("/session/{}", made["sessionId"].as_str().unwrap());
        // The window includes borders, so set the size of the page.
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        browser.tools("Emulation.setDeviceMetricsOverride", &size);
        Some(browser)
    }

    /// Sends a command to the driver and returns its value.
    #[track_caller]
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let (head, body) = self.ask(method, path, body).unwrap();
        let mut value: Value = serde_json::from_slice(&body).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {value}");
        value["value"].take()
    }

    /// Sends a command to the driver and returns head and body of the response.
    fn ask(&self, method: &str, path: &str, body: &Value) -> io::Result<(String, Vec<u8>)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = if method == "GET" {
            String::new()
        } else {
            body.to_string()
        };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\n\
             Content-Type: application/json\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        // The driver ignores `Connection: close`, so read exactly one response.
        let mut stream = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            if stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = head[start..].to_ascii_lowercase();
            if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        Ok((head, body))
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.send("POST", &format!("{}{path}", self.session), body)
    }

    /// Sends a command of the DevTools protocol.
    #[track_caller]
    fn tools(&self, command: &str, params: &Value) -> Value {
        self.post(
            "/goog/cdp/execute",
            &json!({"cmd": command, "params": params}),
        )
    }

    #[track_caller]
    fn go(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// Runs a script in the page and returns its result.
    #[track_caller]
    fn eval(&self, script: &str) -> Value {
        self.post(
            "/execute/sync",
            &json!({"script": format!("return {script}"), "args": []}),
        )
    }

    /// Waits until a script returns `true`.
    #[track_caller]
    fn wait_for(&self, script: &str) {
        let begin = Instant::now();
        while self.eval(script) != json!(true) {
            let page = || self.eval("document.body.innerText");
            assert!(
                begin.elapsed() < PATIENCE,
                "`{script}` never comes true: {}",
                page()
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn press(&self, key: &str) {
        let keys = [
            json!({"type": "keyDown", "value": key}),
            json!({"type": "keyUp", "value": key}),
        ];
        let typed = json!({"actions": [{"type": "key", "id": "keys", "actions": keys}]});
        self.post("/actions", &typed);
    }

    #[track_caller]
    fn type_into(&self, selector: &str, text: &str) {
        let wanted = json!({"using": "css selector", "value": selector});
        let found = self.post("/element", &wanted);
        let id = found[ELEMENT].as_str().unwrap();
        self.post(&format!("/element/{id}/value"), &json!({"text": text}));
    }

    /// Returns the browser's console messages.
    #[track_caller]
    fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let lines = log.as_array().unwrap().iter();
        let severe = lines.filter(|line| line["level"] != "INFO" && line["level"] != "DEBUG");
        severe.map(|line| line["message"].to_string()).collect()
    }

    #[track_caller]
    fn picture(&self) -> Vec<u8> {
        let taken = self.tools(
            "Page.captureScreenshot",
            &json!({"format": "png", "captureBeyondViewport": false}),
        );
        base64(taken["data"].as_str().unwrap())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser exits with its session. If only the driver is killed, the browser stays.
        if !self.session.is_empty() {
            let _ = self.ask("DELETE", &self.session, &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values = text
        .bytes()
        .filter_map(|c| digits.iter().position(|digit| *digit == c));
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_usize, 0);
    for value in values {
        bits = (bits << 6) | value;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

/// All pages of [`web::project`].
const PAGES: [&str; 7] = [
    "",
    "s/demo/",
    "s/demo/1.html",
    "s/demo/2.html",
    "s/other-way/",
    "find.html?q=digit",
    "compare.html?t=demo:1&t=demo:2",
];

#[test]
fn pages_fit_a_desktop_and_a_phone_and_nothing_is_complained_of() {
    for size in [(1280, 900), (360, 740)] {
        let Some(browser) = Browser::open(size) else {
            return;
        };
        let repo = web::project();
        let web = Web::start(&repo, &[]);
        for page in PAGES {
            browser.go(&format!("{}{page}", web.url));
            let wide = "document.documentElement.scrollWidth - window.innerWidth";
            let wide = browser.eval(wide).as_i64().unwrap();
            assert!(wide <= 0, "{page} is {wide} pixels wider than {}", size.0);
            browser.wait_for("document.getElementById('live').className === 'on'");
        }
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn keys_lead_through_the_pages() {
    let Some(browser) = Browser::open((1280, 900)) else {
        return;
    };
    let repo = web::project();
    let web = Web::start(&repo, &[]);
    // A key has an effect only after the page has registered its handler.
    let at = |page: &str| {
        let here = format!("location.href === '{}{page}'", web.url);
        let listens = "document.getElementById('live')?.className === 'on'";
        browser.wait_for(&format!("{here} && {listens}"));
    };
    let move_to = |key: &str, item: usize| {
        browser.press(key);
        let items = "document.querySelectorAll('[data-item]')";
        browser.wait_for(&format!("{items}[{item}] === document.activeElement"));
    };
    browser.go(&web.url);
    at("");
    move_to("j", 0);
    move_to("j", 1);
    move_to("k", 0);
    move_to("j", 1);
    browser.press("\u{e007}");
    at("s/demo/index.html");
    move_to("j", 0);
    browser.press("\u{e007}");
    at("s/demo/2.html");
    browser.press("p");
    at("s/demo/1.html");
    browser.press("n");
    at("s/demo/2.html");
    browser.press("u");
    at("s/demo/index.html");
    browser.press("/");
    browser.wait_for("document.activeElement.type === 'search'");
    browser.type_into("input[type=search]", "digit\u{e007}");
    at("find.html?q=digit");
    browser.wait_for("document.querySelectorAll('mark').length > 0");
    browser.press("\u{e004}");
    browser.wait_for("document.activeElement.className === 'skip'");
}

#[test]
fn a_turn_of_another_process_appears() {
    let Some(browser) = Browser::open((1280, 900)) else {
        return;
    };
    let repo = web::project();
    let web = Web::start(&repo, &[]);
    browser.go(&format!("{}s/other-way/", web.url));
    browser.wait_for("document.getElementById('live').className === 'on'");
    repo.run_plan(&plan("Appear", &[create("c.txt", "c\n")]));
    browser.wait_for("document.querySelector('main').innerText.includes('Appear')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    drop(web);
    browser.wait_for("document.getElementById('live').className === 'off'");
}

#[test]
fn what_others_wrote_reads_only() {
    let Some(browser) = Browser::open((1280, 900)) else {
        return;
    };
    let hostile = "<script>window.ran=1</script><img src=x onerror=window.ran=1><svg onload=window.ran=1>\
        [x](javascript:window.ran=1)\"' onfocus=window.ran=1 autofocus";
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    let said = format!("cat <<'E'\n{hostile}\nE");
    repo.reply(&plan(
        hostile,
        &[create("b.html", &format!("{hostile}\n")), execute(&said)],
    ));
    repo.done(&["resume", "-y", "-m", hostile]);
    repo.put("<img src=x onerror=window.ran=1>.txt", hostile);
    repo.done(&["record", hostile]);
    let web = Web::start(&repo, &[]);
    let pages = [
        "",
        "s/demo/",
        "s/demo/1.html",
        "s/demo/2.html",
        "find.html?q=%3Cscript%3E%3Cimg",
        "find.html?q=ran&in=plan&in=output&in=code",
        "compare.html?t=demo:1&t=demo:2",
        "compare.html?t=%3Cimg%20src=x%20onerror=window.ran=1%3E&t=x",
    ];
    for page in pages {
        browser.go(&format!("{}{page}", web.url));
        browser.eval("document.querySelectorAll('details').forEach(one => one.open = true)");
        browser.wait_for("document.getElementById('live').className === 'on'");
        assert_eq!(
            browser.eval("window.ran === undefined"),
            json!(true),
            "{page}"
        );
        let own = "[...document.querySelectorAll('script, img, iframe, object, [onerror], [onload], [onfocus]')].length";
        assert_eq!(browser.eval(own), json!(1), "{page}");
        let links = "[...document.links].every(link => link.href.startsWith(location.origin))";
        assert_eq!(browser.eval(links), json!(true), "{page}");
    }
    // The browser logs a missing page as an error.
    let mut complaints = browser.complaints();
    complaints.retain(|line| !line.contains("404 (Not Found)"));
    assert_eq!(complaints, Vec::<String>::new());
}

#[test]
fn pages_work_as_files() {
    let Some(browser) = Browser::open((1280, 900)) else {
        return;
    };
    let repo = web::project();
    repo.done(&["export", "--html", "../pages", "--all"]);
    let pages = repo.beside("pages");
    browser.go(&format!("file://{}/index.html", pages.display()));
    browser.eval("document.querySelector('ul.rows a').click()");
    browser.wait_for(
        "document.title.startsWith('Write the number') && document.readyState === 'complete'",
    );
    browser.eval("document.querySelector('.turn a').click()");
    browser.wait_for("document.title.startsWith('2 Say so')");
    // The stylesheet is loaded.
    browser.wait_for(
        "getComputedStyle(document.querySelector('.diff')).borderCollapse === 'collapse'",
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn kept(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name)
}

/// Replaces every id, time and number.
fn without_ids(text: &str) -> Cow<'_, str> {
    static ID: LazyLock<Regex> = LazyLock::new(|| {
        let long = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
        Regex::new(&format!(
            r"\b({long}|[0-9a-f]{{40}}|[0-9a-f]{{12}})\b|[0-9a-f]*[0-9][0-9a-f]*"
        ))
        .unwrap()
    });
    ID.replace_all(text, "#")
}

/// A part of an id can consist of letters only, and must not be taken for a word.
#[test]
fn ids_are_distinguished_from_words() {
    let ids = [
        "01a20c05-beef-7fad-adda-f971d7223662",
        "01a20c05-796b-768f-9dc2-315ddae42eb5",
        "cafecafecafe",
        "12.5",
    ];
    assert_eq!(
        without_ids(&ids.join(" of a page ")),
        "# of a page # of a page # of a page #.#"
    );
}

/// Returns a digest of pages and stylesheet, without ids and times.
fn shown(pages: &[String]) -> String {
    let style = std::fs::read_to_string(
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/ui/html/style.css"),
    );
    let text = format!("{}{}", pages.concat(), style.unwrap());
    teddy::text::digest(&without_ids(&text))
}

#[test]
fn the_pictures_in_the_documents_are_of_these_pages() {
    let repo = web::project();
    let web = Web::start(&repo, &[]);
    let pages = ["s/demo/", "s/demo/1.html"];
    let now = shown(&pages.map(|page| web.get(page).body));
    if !teddy::host::env::is_set("TEDDY_RECORD") {
        let made_of = std::fs::read_to_string(kept("web.txt")).unwrap();
        assert_eq!(
            made_of.trim(),
            now,
            "docs/web-*.png show other pages; make them anew with `TEDDY_RECORD=1 cargo test --test worlds \
             web_browser`, where there is Chromium, and look at them"
        );
        return;
    }

    let browser = Browser::open((1000, 640)).expect("pictures take a browser");
    for (page, name) in pages.iter().zip(["web-session.png", "web-turn.png"]) {
        browser.go(&format!("{}{page}", web.url));
        browser.wait_for("document.getElementById('live').className === 'on'");
        std::fs::write(kept(name), browser.picture()).unwrap();
    }
    std::fs::write(kept("web.txt"), now + "\n").unwrap();
}
