//! `balde replay` on small logs.

mod program;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::{Compression, write::GzEncoder};
use program::{Run, balde};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with logs in it.
struct Logs(TempDir);

impl Logs {
    fn new() -> Self {
        Logs(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name).to_str().unwrap().into()
    }
}

/// A line of an access log at a second of one minute.
fn access(ip: &str, second: u32) -> String {
    format!("{ip} - - [17/May/2015:10:05:{second:02} +0000] \"GET /a?b HTTP/1.1\" 200 5 \"-\" \"-\"\n")
}

fn replay(log: &str, more: &[&str], input: &[u8]) -> Run {
    let args = ["replay", log, "--limit", "1/s"].into_iter().chain(more.iter().copied());
    balde(args, input)
}

fn object(run: &Run) -> Value {
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    serde_json::from_str(&run.out).unwrap()
}

/// What the JSON says of keys: name, admitted, denied.
fn keys(object: &Value) -> Vec<(String, u64, u64)> {
    let keys = object["keys"].as_array().unwrap().iter();
    keys.map(|key| {
        (key["key"].as_str().unwrap().into(), key["admitted"].as_u64().unwrap(), key["denied"].as_u64().unwrap())
    })
    .collect()
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_json_has_its_shape() {
    let text = access("b", 1) + &access("a", 1) + &access("b", 1) + "\n" + &access("c", 3) + &access("c", 3);
    let found = object(&replay("-", &["--json"], text.as_bytes()));
    let wanted = json!({
        "lines": 6,
        "bad_lines": 1,
        "late_lines": 0,
        "admitted": 3,
        "denied": 2,
        "limits": ["1/s"],
        "key": "ip",
        "from": "2015-05-17T10:05:01Z",
        "to": "2015-05-17T10:05:03Z",
        "keys": [
            {"key": "b", "admitted": 1, "denied": 1},
            {"key": "c", "admitted": 1, "denied": 1},
            {"key": "a", "admitted": 1, "denied": 0},
        ],
        "timeline_step_seconds": 1,
        "timeline": [
            {"at": "2015-05-17T10:05:01Z", "admitted": 2, "denied": 1},
            {"at": "2015-05-17T10:05:02Z", "admitted": 0, "denied": 0},
            {"at": "2015-05-17T10:05:03Z", "admitted": 1, "denied": 1},
        ],
        "first_bad_lines": [{"log": "standard input", "line": 4, "why": "an empty line"}],
    });
    assert_eq!(found, wanted);
    assert_eq!(keys(&object(&replay("-", &["--json", "--top", "1"], text.as_bytes()))).len(), 1);
}

#[test]
fn every_format_tells_the_same() {
    let logs = Logs::new();
    let combined = access("::1", 1) + &access("10.0.0.1", 2) + &access("::1", 1);
    let json = r#"{"time": "2015-05-17T12:05:01+02:00", "ip": "::1"}
{"time": 1431857102, "ip": "10.0.0.1"}
{"time": 1431857101000, "ip": "::1"}
"#;
    let csv = "n;ip;ts\n1;\"::1\";2015-05-17 10:05:01\n2;10.0.0.1;1431857102\n3;::1;1431857101.0";
    for (name, text) in [("log", combined.as_str()), ("json", json), ("csv", csv)] {
        let found = object(&replay(&logs.put(name, text), &["--json"], b""));
        assert_eq!(keys(&found), [("::1".into(), 1, 1), ("10.0.0.1".into(), 1, 0)], "{name}");
        assert_eq!((&found["lines"], &found["from"]), (&json!(3), &json!("2015-05-17T10:05:01Z")), "{name}");
    }
}

#[test]
fn gzip_is_known_by_its_bytes_also_in_several_pieces() {
    let logs = Logs::new();
    let pieces = [packed(access("a", 1).as_bytes()), packed(access("a", 1).as_bytes())].concat();
    for found in [replay(&logs.put("named.like.text", &pieces), &["--json"], b""), replay("-", &["--json"], &pieces)] {
        assert_eq!(keys(&object(&found)), [("a".into(), 1, 1)]);
    }
    let cut = replay(&logs.put("cut.gz", &pieces[..pieces.len() - 4]), &[], b"");
    assert_eq!(cut.code, 2);
    assert!(cut.err.contains("cut.gz"), "{}", cut.err);
}

#[test]
fn several_logs_are_one_after_another() {
    let logs = Logs::new();
    let (first, second) = (logs.put("1", access("a", 1)), logs.put("2", access("a", 1) + "bad\n"));
    let found = object(&balde(["replay", &first, &second, "--limit", "1/s", "--limit", "5/m", "--json"], b""));
    assert_eq!(keys(&found), [("a".into(), 1, 1)]);
    assert_eq!(found["limits"], json!(["1/s", "5/m"]));
    let bad = &found["first_bad_lines"][0];
    assert_eq!((bad["log"].as_str(), &bad["line"]), (Some(second.as_str()), &json!(2)));
}

#[test]
fn keys_come_from_fields_and_patterns() {
    let line = r#"10.0.0.1 - ada [17/May/2015:10:05:03 +0000] "GET /v1/cats?id=7 HTTP/1.1" 200 5 "-" "a \"b\" c""#;
    for (key, value) in [
        ("ip", "10.0.0.1"),
        ("user", "ada"),
        ("path", "/v1/cats"),
        ("target", "/v1/cats?id=7"),
        ("agent", r#"a \"b\" c"#),
        (r"regex:/(v\d)/(?<key>\w+)", "cats"),
        (r"regex:id=(\d)", "7"),
    ] {
        let found = object(&replay("-", &["--json", "--key", key], line.as_bytes()));
        assert_eq!(keys(&found), [(value.into(), 1, 0)], "{key}");
    }
    let nested = br#"{"ts": 1, "tenant": {"id": 7}}"#;
    assert_eq!(keys(&object(&replay("-", &["--json", "--key", "tenant.id"], nested))), [("7".into(), 1, 0)]);
    let none = object(&replay("-", &["--json", "--key", "tenant"], line.as_bytes()));
    assert_eq!(none["first_bad_lines"][0]["why"], "no key: tenant");
}

#[test]
fn costs_and_times_come_from_named_fields() {
    let lines = b"{\"when\": 1, \"ip\": \"a\", \"n\": 3}\n{\"when\": 1, \"ip\": \"a\", \"n\": 1}\n{\"when\": 1, \"ip\": \"a\"}\n{\"when\": 1, \"ip\": \"a\", \"n\": 0.5}";
    let more = ["--json", "--time-field", "when", "--cost-field", "n"];
    let found = object(&replay("-", &more, lines));
    // Three tokens are more than a full bucket of 1/s ever holds.
    assert_eq!(keys(&found), [("a".into(), 1, 1)]);
    let why: Vec<_> = (0..2).map(|index| &found["first_bad_lines"][index]["why"]).collect();
    assert_eq!(why, ["no cost: n", "the cost is not a whole number of tokens"]);
}

#[test]
fn lines_are_sorted_within_the_window_and_late_beyond_it() {
    let logs = Logs::new();
    let text = access("a", 5) + &access("a", 4) + "bad\n" + &access("a", 5) + &access("a", 40) + &access("a", 1);
    let played = |window: &str| {
        let file = logs.path("decisions");
        let found =
            replay("-", &["--json", "--window", window, "--decisions", file.to_str().unwrap()], text.as_bytes());
        (object(&found)["late_lines"].clone(), fs::read_to_string(file).unwrap())
    };
    // In order of their times: 1, 4, 5, 5, 40.
    assert_eq!(played("60s"), (json!(0), "AABDAA".into()));
    // With no window the second and the last are late, at 5 and at 40 s.
    assert_eq!(played("0s"), (json!(2), "ADBDAD".into()));
}

#[test]
fn bad_lines_are_counted_and_the_first_shown() {
    let long = "x".repeat(3 << 20);
    let text = format!("{}\u{1b}[2J\n\n{long}\nworse\n{}", access("a", 1), access("a", 2).replace("200", "2x0"));
    let found = replay("-", &[], text.as_bytes());
    assert_eq!(found.code, 0);
    assert!(found.out.contains("5  of 6 lines; the first:"), "{}", found.out);
    assert!(found.out.contains("standard input:2: not an access log"), "{}", found.out);
    assert!(found.out.contains("standard input:3: an empty line"), "{}", found.out);
    assert!(found.out.contains("standard input:4: longer than"), "{}", found.out);
    assert!(!found.out.contains("worse") && !found.out.contains('\u{1b}'), "{}", found.out);
}

#[test]
fn the_text_fits_80_columns_and_names_the_denied() {
    let text: String = (0..200).map(|n| access(&format!("2001:db8::{}{n}", "0".repeat(60)), n / 4 % 60)).collect();
    let found = replay("-", &["--top", "2"], (text + &access("10.0.0.1", 9).repeat(30)).as_bytes());
    assert!(found.out.lines().all(|line| line.chars().count() <= 80), "{}", found.out);
    let wanted =
        ["10.0.0.1", "1 of 201 keys were denied something", "█▒", "2015-05-17 10:05:00 to 2015-05-17 10:05:49 UTC"];
    for part in wanted {
        assert!(found.out.contains(part), "{part}: {}", found.out);
    }
}

#[test]
fn the_page_stands_alone_and_trusts_nobody() {
    let logs = Logs::new();
    let file = logs.put("report.html", "an older one");
    let evil = r#"{"ts": 1, "ip": "<script>alert('x')</script>\" onload=\"y"}"#;
    let text = [evil, evil, "<b>", evil].join("\n");
    let found = replay("-", &["--html", &file, "--format", "json"], text.as_bytes());
    assert_eq!(found.code, 0, "{}", found.err);
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot; onload=&quot;y"), "{page}");
    for foreign in ["<script", "src=", "href=", "http:", "https:", "//", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for part in ["<svg", "<table", "1 admitted, 2 denied", "prefers-color-scheme: dark", "not JSON"] {
        assert!(page.contains(part), "{part}");
    }
    for tag in ["svg", "div", "p", "g", "text", "title", "style", "h1", "h2", "table"] {
        let count = |text: &str| page.matches(text).count();
        let opened = count(&format!("<{tag}>")) + count(&format!("<{tag} "));
        assert_eq!(opened, count(&format!("</{tag}>")), "{tag}");
    }
    assert_eq!(fs::read_dir(logs.0.path()).unwrap().count(), 1, "no partial file stays");
}

#[test]
fn misuse_is_told_before_anything_is_played() {
    let logs = Logs::new();
    let (good, folder) = (logs.put("good", access("a", 1)), logs.path("").to_str().unwrap().to_string());
    let missing = logs.path("missing").to_str().unwrap().to_string();
    let nowhere = logs.path("no/such/report.html").to_str().unwrap().to_string();
    for (args, says) in [
        (vec!["replay", &good, &missing, "--limit", "1/s"], "missing"),
        (vec!["replay", &folder, "--limit", "1/s"], "directory"),
        (vec!["replay", &good, "--limit", "0/s"], "hint: a limit reads"),
        (vec!["replay", &good, "--limit", "1/s", "--limit", "60/60s", "--limit", "2/s"], "same period"),
        (vec!["replay", &good, "--limit", "1/s", "--key", "regex:("], "--key"),
        (vec!["replay", &good, "--limit", "1/s", "--key", "tenant", "--format", "combined"], "tenant"),
        (vec!["replay", &good, "--limit", "1/s", "--window", "soon"], "--window"),
        (vec!["replay", &good, "--limit", "1/s", "--html", &nowhere], "report.html"),
        (vec!["replay", &good, "--limit", "1/s", "--store", "memcached://x"], "scheme"),
        (vec!["replay", &good], "--limit"),
        (vec!["replay", "--limit", "1/s"], "LOG"),
    ] {
        let run = balde(&args, b"");
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}: {}", run.err);
        assert!(run.err.contains(says), "{args:?}: {}", run.err);
    }
}

#[test]
fn nothing_at_all_is_a_report_too() {
    let found = object(&replay("-", &["--json"], b""));
    assert_eq!((&found["lines"], &found["from"], &found["keys"]), (&json!(0), &Value::Null, &json!([])));
    let text = replay("-", &[], b"");
    assert_eq!(text.code, 0);
    assert!(text.out.contains("0 of 0 keys"), "{}", text.out);
}
