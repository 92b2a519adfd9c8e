//! Tests of reading a pipeline.

use super::*;

fn read(text: &str) -> Result<Pipeline, Mistakes> {
    let file = |name: &str| {
        if name == "plan.md" {
            Ok("Plan: {{message}}".to_owned())
        } else {
            Err("no such file".to_owned())
        }
    };

    let model = |name: &str| {
        if name == "fast" {
            Ok(())
        } else {
            Err(format!("`{name}` is not a known model"))
        }
    };
    parse(
        text,
        &KnownNames {
            file: &file,
            model: &model,
        },
    )
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(read(text).err().unwrap_or(Mistakes(Vec::new())).0, expected);
}

#[test]
fn st1_a_pipeline_has_a_largest_size() {
    check(
        &format!("# {}", "x".repeat(MAX_PIPELINE_BYTES)),
        &["the file has 65538 bytes; at most 65536 are read"],
    );
}

#[test]
fn st2_a_pipeline_has_steps_and_a_description() {
    check(
        "description: x\nsteps: []\n",
        &["`steps` must be a list of at least one step"],
    );
    check(
        "[]",
        &[
            "must be a mapping with description, steps",
            "`steps` must be a list of at least one step",
        ],
    );
    check(
        "stages: [{name: a, prompt: x}]",
        &[
            "`stages` is not known here; there are description, steps",
            "`steps` must be a list of at least one step",
        ],
    );
    let many: String = (0..21)
        .map(|n| format!("  - {{name: s{n}, prompt: x}}\n"))
        .collect();

    check(
        &format!("steps:\n{many}"),
        &["there are 21 steps, the limit is 20"],
    );
}

#[test]
fn st3_a_step_has_known_keys_with_texts() {
    check(
        "steps: [{name: a, prompt: x, temperature: 1}]",
        &[
            "step 1 `a`: `temperature` is not known here; there are name, prompt, prompt_file, model, inputs",
        ],
    );
    check(
        "steps: [{name: a, prompt: 7}]",
        &[
            "step 1 `a`: `prompt` must be a text",
            "step 1 `a`: give either `prompt` or `prompt_file`",
        ],
    );
}

#[test]
fn st4_a_name_is_plain_unique_and_no_input() {
    let rule = "`name` must be lower-case letters, digits and dashes, and begin with a letter";
    check("steps: [{prompt: x}]", &[&format!("step 1: {rule}")]);
    check(
        "steps: [{name: ../A, prompt: x}]",
        &[&format!("step 1 `../A`: {rule}")],
    );
    check(
        "steps: [{name: input, prompt: x}]",
        &["step 1 `input`: the name stands for an input already"],
    );

    check(
        "steps: [{name: a, prompt: x}, {name: a, prompt: y}]",
        &["step 2 `a`: an earlier step has the same name"],
    );
}

#[test]
fn st5_a_prompt_is_here_or_in_a_file_beside() {
    assert_eq!(
        read("steps: [{name: a, prompt_file: plan.md}]")
            .unwrap()
            .steps[0]
            .prompt,
        "Plan: {{message}}"
    );
    check(
        "steps: [{name: a}]",
        &["step 1 `a`: give either `prompt` or `prompt_file`"],
    );
    check(
        "steps: [{name: a, prompt: x, prompt_file: plan.md}]",
        &["step 1 `a`: give either `prompt` or `prompt_file`"],
    );
    check(
        "steps: [{name: a, prompt: ' '}]",
        &["step 1 `a`: the prompt is empty"],
    );
    check(
        "steps: [{name: a, prompt_file: b.md}]",
        &["step 1 `a`: cannot read `b.md`: no such file"],
    );

    check(
        "steps: [{name: a, prompt_file: ../b.md}]",
        &[
            "step 1 `a`: `prompt_file` must be the name of a file beside the pipeline, and `../b.md` is a path",
        ],
    );
}

#[test]
fn st6_a_model_is_one_that_there_is() {
    assert_eq!(
        read("steps: [{name: a, prompt: x, model: fast}]")
            .unwrap()
            .steps[0]
            .model
            .as_deref(),
        Some("fast")
    );
    check(
        "steps: [{name: a, prompt: x, model: slow}]",
        &["step 1 `a`: `slow` is not a known model"],
    );
}

#[test]
fn st7_inputs_are_parts_of_the_turn_and_earlier_steps() {
    let steps = read(
        "steps: [{name: a, prompt: x}, {name: b, prompt: x, inputs: [a]}, {name: c, prompt: x}]",
    )
    .unwrap()
    .steps;
    let names: Vec<Vec<&str>> = steps
        .iter()
        .map(|step| step.inputs.iter().map(StepInput::name).collect())
        .collect();

    assert_eq!(
        names,
        [
            vec!["input", "message"],
            vec!["a"],
            vec!["system", "input", "message", "b"]
        ]
    );
    check(
        "steps: [{name: a, prompt: x, inputs: [b]}, {name: b, prompt: x}]",
        &["step 1 `a`: the input `b` is neither `input`, `message`, `system` nor an earlier step"],
    );
    check(
        "steps: [{name: a, prompt: x, inputs: [input, input]}]",
        &["step 1 `a`: the input `input` is listed twice"],
    );

    check(
        "steps: [{name: a, prompt: x, inputs: input}]",
        &["step 1 `a`: `inputs` must be a list of names"],
    );
}

#[test]
fn st8_a_placeholder_is_one_of_the_inputs() {
    check(
        "steps: [{name: a, prompt: 'x {{Message}} {{ plan }}'}]",
        &[
            "step 1 `a`: `{{Message}}` is not among the step's inputs",
            "step 1 `a`: `{{plan}}` is not among the step's inputs",
        ],
    );
    check(
        "steps: [{name: a, prompt: '{{message}} \\{{x}} {{ x y }} {{}}'}]",
        &[],
    );
}

#[test]
fn st11_all_mistakes_are_said_at_once() {
    check(
        "steps: [{name: A, prompt: '{{b}}', model: m}, {name: b}]",
        &[
            "step 1 `A`: `name` must be lower-case letters, digits and dashes, and begin with a letter",
            "step 1 `A`: `m` is not a known model",
            "step 1 `A`: `{{b}}` is not among the step's inputs",
            "step 2 `b`: give either `prompt` or `prompt_file`",
        ],
    );
    assert_eq!(read("steps: [").unwrap_err().0.len(), 1);
    check(&"[".repeat(60_000), &["line 1 is nested more than 64 deep"]);
}
