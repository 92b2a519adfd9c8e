//! `teddy get-prompt`: prints system prompts.

use super::app::App;
use super::complete;
use crate::model::prompt::Prompts;
use crate::workflow::model::agents;

/// Print an agent's system prompt, or list the agents
///
/// `.teddy/prompts/<name>.xml` overrides a built-in prompt once you trust the repository.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy get-prompt\n  mkdir -p .teddy/prompts; teddy get-prompt architect > .teddy/prompts/architect.xml"
)]
pub(super) struct Args {
    /// The agent
    #[arg(add = complete::with(complete::agents))]
    name: Option<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    // Built-in prompts need no repository.
    let prompts = app
        .project()
        .map_or_else(|_| Prompts::default(), |project| agents::prompts(&project));
    if let Some(name) = &args.name {
        let prompt = prompts.find(name)?;
        if app.global.json {
            app.print_json(&serde_json::json!({ "name": prompt.name, "description": prompt.description, "text": prompt.text }))?;
        } else {
            app.print_foreign(&prompt.text)?;
        }
        return Ok(());
    }

    let all = prompts.all();
    if app.global.json {
        let rows: Vec<_> = all
            .iter()
            .map(|p| serde_json::json!({ "name": p.name, "description": p.description }))
            .collect();
        app.print_json(&rows)?;
    } else {
        let width = all.iter().map(|p| p.name.len()).max().unwrap_or(0);
        let text: String = all
            .iter()
            .map(|p| format!("{:width$}  {}\n", p.name, p.description))
            .collect();
        app.print_foreign(&text)?;
    }

    Ok(())
}
