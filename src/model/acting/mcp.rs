//! MCP servers that an editor names for an agent inside.
//!
//! Each is a program or an address with the user's keys. The agent starts them, so they run inside
//! its sandbox. Only their names and transports are recorded.

use std::path::Path;

use serde_json::{Value, json};

use super::agent_output::sanitize_label;
use crate::host::inherited::is_secret_name;

/// In the editor's list.
const MAX_SERVERS: usize = 100;

/// Transport of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// Every agent supports it.
    Stdio,
    Http,
    Sse,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
            Transport::Sse => "sse",
        }
    }
}

/// An MCP server as the protocol describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    name: String,
    transport: Transport,
    /// As the editor sent it.
    value: Value,
}

impl McpServer {
    /// Reads `mcpServers` of a request. `null` has none. The error completes a sentence that starts
    /// with `mcpServers`.
    pub fn read_list(servers: &Value) -> Result<Vec<McpServer>, String> {
        match servers {
            Value::Null => Ok(Vec::new()),
            Value::Array(servers) if servers.len() <= MAX_SERVERS => {
                servers.iter().map(McpServer::read).collect()
            }
            Value::Array(_) => Err(format!("has more than {MAX_SERVERS} servers")),
            _ => Err("is not a list".to_owned()),
        }
    }

    fn read(server: &Value) -> Result<McpServer, String> {
        let text = |key: &str| server[key].as_str().unwrap_or_default();
        let name = sanitize_label(text("name"));
        let transport = match text("type") {
            "" | "stdio" => Transport::Stdio,
            "http" => Transport::Http,
            "sse" => Transport::Sse,
            other => return Err(format!("has the unknown type `{}`", sanitize_label(other))),
        };
        let place = match transport {
            Transport::Stdio => "command",
            Transport::Http | Transport::Sse => "url",
        };
        if name.is_empty() || text(place).is_empty() {
            return Err(format!("has a server without a `name` or `{place}`"));
        }

        // The protocol requires these lists, even if empty.
        let mut value = server.clone();
        let lists: &[&str] = match transport {
            Transport::Stdio => &["args", "env"],
            Transport::Http | Transport::Sse => &["headers"],
        };
        for list in lists {
            match &value[list] {
                Value::Null => value[list] = json!([]),
                Value::Array(_) => {}
                _ => return Err(format!("has a server whose `{list}` is not a list")),
            }
        }
        Ok(McpServer {
            name,
            transport,
            value,
        })
    }

    /// Whether an agent with these `agentCapabilities` takes it.
    fn is_supported(&self, abilities: &Value) -> bool {
        match self.transport {
            Transport::Stdio => true,
            transport => abilities["mcpCapabilities"][transport.name()] == true,
        }
    }

    fn named(&self) -> String {
        format!("`{}` ({})", self.name, self.transport.name())
    }

    /// What must not be recorded: values of variables and headers, the address, and arguments of
    /// options that are named like a key.
    fn secrets(&self) -> impl Iterator<Item = String> {
        let arguments = self.value["args"].as_array().into_iter().flatten();
        let arguments: Vec<&str> = arguments.filter_map(Value::as_str).collect();
        // `--token=<value>` as `--token <value>`.
        let words: Vec<&str> = arguments
            .iter()
            .flat_map(|argument| match argument.split_once('=') {
                Some((option, value)) if option.starts_with('-') => vec![option, value],
                _ => vec![*argument],
            })
            .collect();
        let is_key = |option: &str| {
            let name = option.trim_start_matches('-').replace('-', "_");
            option.starts_with('-') && is_secret_name(&name.to_ascii_uppercase())
        };
        let keys = words.windows(2).filter(|pair| is_key(pair[0]));
        let keys: Vec<String> = keys.map(|pair| pair[1].to_owned()).collect();

        let pairs = ["env", "headers"].map(|key| self.value[key].as_array());
        let values = pairs.into_iter().flatten().flatten();
        let values = values
            .map(|pair| &pair["value"])
            .chain([&self.value["url"]]);
        let texts = values.filter_map(|value| Some(value.as_str()?.to_owned()));
        // Also the token of a header such as `Bearer <token>`.
        let with_token = |text: String| {
            let token = text.rsplit_once(' ').map(|(_, token)| token.to_owned());
            [Some(text), token].into_iter().flatten()
        };
        let texts = texts.flat_map(with_token).chain(keys);
        // Directories such as `HOME` are not secret, and occur everywhere.
        texts.filter(|text| !(Path::new(text).is_absolute() && Path::new(text).exists()))
    }
}

/// What an agent with these `agentCapabilities` gets, for the protocol.
pub(super) fn supported(servers: &[McpServer], abilities: &Value) -> Vec<Value> {
    let servers = servers.iter().filter(|it| it.is_supported(abilities));
    servers.map(|server| server.value.clone()).collect()
}

/// The same for the record: without commands, addresses and keys.
pub(super) fn recorded(servers: &[McpServer], abilities: &Value) -> Vec<Value> {
    let servers = servers.iter().filter(|it| it.is_supported(abilities));
    let public =
        |server: &McpServer| json!({ "name": server.name, "type": server.transport.name() });
    servers.map(public).collect()
}

/// Says which servers an agent does not get. `None` if it gets them all.
pub(super) fn left_out(servers: &[McpServer], abilities: &Value) -> Option<String> {
    let servers = servers.iter().filter(|it| !it.is_supported(abilities));
    let names: Vec<String> = servers.map(McpServer::named).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the agent cannot reach these MCP servers of the editor: {}",
            names.join(", ")
        )
    })
}

/// Values to redact from the record.
pub(super) fn secrets(servers: &[McpServer]) -> impl Iterator<Item = String> {
    servers.iter().flat_map(McpServer::secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(servers: Value, expected: &str) {
        assert_eq!(McpServer::read_list(&servers), Err(expected.to_owned()));
    }

    #[test]
    fn a_list_is_read_whole_or_not_at_all() {
        assert_eq!(McpServer::read_list(&Value::Null), Ok(Vec::new()));
        check_error(json!({}), "is not a list");
        check_error(
            json!([{ "name": "a", "command": "/a" }, { "name": "b" }]),
            "has a server without a `name` or `command`",
        );
        check_error(
            json!([{ "type": "http", "name": "a", "url": "u", "headers": {} }]),
            "has a server whose `headers` is not a list",
        );
        check_error(
            json!([{ "type": "\u{1b}", "name": "a" }]),
            "has the unknown type `\\u{1b}`",
        );
        check_error(
            json!(vec![Value::Null; MAX_SERVERS + 1]),
            "has more than 100 servers",
        );
    }

    #[test]
    fn an_agent_gets_the_transports_that_it_supports() {
        let servers = McpServer::read_list(&json!([
            { "name": "files", "command": "/bin/files", "args": ["--api-key", "secret-0", "--token=secret-t", "--dir=x"], "env": [{ "name": "KEY", "value": "secret-1" }] },
            { "type": "http", "name": "web", "url": "https://web", "headers": [] },
            { "type": "sse", "name": "old", "url": "https://old", "headers": [{ "name": "A", "value": "Bearer secret-2" }] },
        ]))
        .unwrap();
        let abilities = json!({ "mcpCapabilities": { "http": true, "sse": false } });
        let names = |servers: Vec<Value>| -> Vec<String> {
            let names = servers
                .iter()
                .map(|it| it["name"].as_str().unwrap().to_owned());
            names.collect()
        };
        assert_eq!(names(supported(&servers, &abilities)), ["files", "web"]);
        assert_eq!(names(supported(&servers, &Value::Null)), ["files"]);
        assert_eq!(
            recorded(&servers, &abilities),
            [
                json!({ "name": "files", "type": "stdio" }),
                json!({ "name": "web", "type": "http" }),
            ]
        );
        assert_eq!(
            left_out(&servers, &abilities).unwrap(),
            "the agent cannot reach these MCP servers of the editor: `old` (sse)"
        );
        let all = json!({ "mcpCapabilities": { "http": true, "sse": true } });
        assert_eq!(left_out(&servers, &all), None);
        assert_eq!(
            secrets(&servers).collect::<Vec<_>>(),
            [
                "secret-1",
                "secret-0",
                "secret-t",
                "https://web",
                "Bearer secret-2",
                "secret-2",
                "https://old",
            ]
        );
    }
}
