//! Plans and actions as a model writes them.

pub fn plan(title: &str, actions: &[String]) -> String {
    with_memos(title, "", actions)
}

pub fn with_memos(title: &str, memos: &str, actions: &[String]) -> String {
    let memos = if memos.is_empty() {
        String::new()
    } else {
        format!("## Memos\n````text\n{memos}\n````\n\n")
    };
    format!(
        "# {title}\n- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Pathfinder\n\n\
         ## Rationale\n````text\n{title}, because it is wanted.\n````\n\n{memos}## Action Plan\n\n{}",
        actions.join("\n")
    )
}

pub fn create(path: &str, content: &str) -> String {
    format!(
        "### `CREATE`\n- **File Path:** [{path}](/{path})\n- **Description:** Make {path}.\n````text\n{content}````\n"
    )
}

pub fn edit(path: &str, find: &str, replace: &str) -> String {
    edit_pairs(path, &[(find, replace)])
}

pub fn edit_pairs(path: &str, pairs: &[(&str, &str)]) -> String {
    let pair = |(find, replace): &(&str, &str)| {
        format!("\n`FIND:`\n````text\n{find}\n````\n`REPLACE:`\n````text\n{replace}\n````\n")
    };
    let pairs: String = pairs.iter().map(pair).collect();
    format!(
        "### `EDIT`\n- **File Path:** [{path}](/{path})\n- **Description:** Change {path}.\n{pairs}"
    )
}

pub fn research(queries: &[&str]) -> String {
    let queries: String = queries
        .iter()
        .map(|query| format!("````text\n{query}\n````\n"))
        .collect();
    format!("### `RESEARCH`\n- **Description:** Look it up.\n{queries}")
}

pub fn execute(script: &str) -> String {
    execute_with("", script)
}

pub fn execute_with(fields: &str, script: &str) -> String {
    format!(
        "### `EXECUTE`\n- **Description:** Run it.\n- **Expected Outcome:** It works.\n{fields}````shell\n{script}\n````\n"
    )
}

pub fn read(path: &str) -> String {
    format!("### `READ`\n- **Resource:** [{path}](/{path})\n- **Description:** Look at it.\n")
}

pub fn prune(path: &str) -> String {
    format!("### `PRUNE`\n- **Resource:** [{path}](/{path})\n- **Description:** Done with it.\n")
}

pub fn chat(message: &str) -> String {
    format!("### `CHAT_WITH_USER`\n{message}\n")
}

pub fn invoke(agent: &str, resources: &[&str], message: &str) -> String {
    format!(
        "### `INVOKE`\n- **Agent:** {agent}\n{}\n{message}\n",
        handoff(resources)
    )
}

pub fn conclude(resources: &[&str], message: &str) -> String {
    format!("### `CONCLUDE`\n{}\n{message}\n", handoff(resources))
}

fn handoff(resources: &[&str]) -> String {
    if resources.is_empty() {
        return String::new();
    }
    let list: String = resources
        .iter()
        .map(|path| format!("  - [{path}](/{path})\n"))
        .collect();
    format!("- **Handoff Resources:**\n{list}")
}

/// A CREATE that overwrites the file.
pub fn replace(path: &str, content: &str) -> String {
    let overwrite = "- **Overwrite:** true\n````text\n";
    create(path, content).replacen("````text\n", overwrite, 1)
}
