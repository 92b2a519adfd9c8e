// A language model for agents, on loopback. Each prompt contains `FEATURE-1`, `-2` or `-3`, and the model works through
// the steps of that feature: it reads, writes, renames and deletes files, and runs a test that fails before its fix. It
// speaks Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini's API, as far as the agents need them.
//
//   node agent_model.mjs PORT_FILE PROJECT
//
// PORT_FILE receives the port. PROJECT is the directory that the agents see.
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";

const FEATURES = {
  1: {
    steps: [
      { read: "sum.sh" },
      { write: "notes.md", text: "# Notes\n\nThe sum is tested.\n" },
      { run: "mv old.txt new.txt" },
      { run: "rm gone.txt" },
      { run: "sh test.sh" },
      { edit: "sum.sh", old: "echo 0", text: "echo $(($1 + $2))" },
      { run: "sh test.sh" },
    ],
    end: "Corrected the sum. The test passes now.",
  },
  // It never ends.
  3: { steps: [{ run: "mkfifo wait && cat wait" }], end: "Waited." },
  2: { steps: [{ run: "printf 'And once more.\\n' >> notes.md" }, { run: "cat notes.md" }], end: "Extended the notes." },
};
// aider takes files from the text of an answer.
const BLOCKS = {
  1: "notes.md\n```\n# Notes\n\nThe sum is tested.\n```\n\nsum.sh\n```\necho $(($1 + $2))\n```\n",
  3: "",
  2: "notes.md\n```\n# Notes\n\nThe sum is tested.\nAnd once more.\n```\n",
};
const SHELLS = ["Bash", "bash", "run_shell_command", "exec_command", "shell", "Shell"];
const READERS = ["Read", "read", "read_file", "ReadFile"];
const EDITORS = ["Edit", "edit", "replace", "StrReplaceFile"];
const WRITERS = ["Write", "write", "write_file", "WriteFile"];
const project = process.argv[3];

/** Text of the newest prompt decides on the feature, the results after it on the step. */
function next(messages, tools) {
  let feature = 0;
  let done = 0;
  for (const { text, results } of messages) {
    const marks = results ? null : text.match(/FEATURE-\d/g);
    if (marks) {
      feature = Number(marks.at(-1).slice(-1));
      done = 0;
    }
    done += results;
  }
  const plan = FEATURES[feature];
  if (!plan) return { text: "Nothing to do." };
  const names = Object.keys(tools);
  const shell = SHELLS.find((name) => names.includes(name));
  if (!shell) return { text: names.length ? plan.end : BLOCKS[feature] + "\n" + plan.end };
  const step = plan.steps[done];
  if (!step) return { text: plan.end };

  const [known, file] = step.read ? [READERS, step.read] : step.edit ? [EDITORS, step.edit] : [WRITERS, step.write];
  const tool = file && known.find((name) => names.includes(name));
  if (tool) return { name: tool, args: fill(tools[tool], `${project}/${file}`, step) };
  // Without a tool for it, in the shell.
  const text = step.text?.replaceAll("\n", "\\n");
  const command = step.run ?? (step.read ? `cat ${file}` : `printf '${text}${step.edit ? "\\n" : ""}' > ${file}`);
  return { name: shell, args: command_of(tools[shell], command) };
}

function fill(schema, path, step) {
  const properties = schema?.properties ?? {};
  const key = (...names) => names.find((name) => name in properties) ?? names[0];
  const args = { [key("file_path", "filePath", "path")]: path };
  if (step.write) args.content = step.text;
  if (!step.edit) return args;
  if ("instruction" in properties) args.instruction = "Correct the sum.";
  return { ...args, [key("old_string", "oldString", "old")]: step.old, [key("new_string", "newString", "new")]: step.text };
}

function command_of(schema, command) {
  const properties = schema?.properties ?? {};
  const key = "cmd" in properties ? "cmd" : "command";
  const args = { [key]: properties[key]?.type === "array" ? ["sh", "-c", command] : command };
  if ("description" in properties) args.description = command;
  if ("is_background" in properties) args.is_background = false;
  return args;
}

const id = () => `call_${Date.now()}${Math.random().toString(36).slice(2, 8)}`;

/** Sends events of a stream. */
function stream(response, events) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const [event, data] of events) {
    response.write((event ? `event: ${event}\n` : "") + `data: ${data === "[DONE]" ? data : JSON.stringify(data)}\n\n`);
  }
  response.end();
}

function json(response, value, status = 200) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

const parts = (content) => (Array.isArray(content) ? content : [{ type: "text", text: String(content ?? "") }]);

function anthropic(response, body) {
  const tools = Object.fromEntries((body.tools ?? []).map((tool) => [tool.name, tool.input_schema]));
  const messages = body.messages.filter((message) => message.role === "user").map((message) => ({
    text: JSON.stringify(message.content),
    results: parts(message.content).filter((part) => part.type === "tool_result").length,
  }));
  const step = next(messages, tools);
  const usage = { input_tokens: 50, output_tokens: 1, cache_read_input_tokens: 7, cache_creation_input_tokens: 3 };
  const block = step.name
    ? [{ type: "tool_use", id: id(), name: step.name, input: {} }, { type: "input_json_delta", partial_json: JSON.stringify(step.args) }]
    : [{ type: "text", text: "" }, { type: "text_delta", text: step.text }];
  stream(response, [
    ["message_start", { type: "message_start", message: { id: id(), type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, usage } }],
    ["content_block_start", { type: "content_block_start", index: 0, content_block: block[0] }],
    ["content_block_delta", { type: "content_block_delta", index: 0, delta: block[1] }],
    ["content_block_stop", { type: "content_block_stop", index: 0 }],
    ["message_delta", { type: "message_delta", delta: { stop_reason: step.name ? "tool_use" : "end_turn" }, usage: { output_tokens: 9 } }],
    ["message_stop", { type: "message_stop" }],
  ]);
}

function gemini(response, body) {
  const declared = (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []);
  const tools = Object.fromEntries(declared.map((tool) => [tool.name, tool.parametersJsonSchema ?? tool.parameters]));
  const messages = (body.contents ?? []).filter((content) => content.role === "user").map((content) => ({
    text: JSON.stringify(content.parts),
    results: content.parts.filter((part) => part.functionResponse).length,
  }));
  const step = next(messages, tools);
  const part = step.name ? { functionCall: { name: step.name, args: step.args } } : { text: step.text };
  stream(response, [["", { candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP" }], usageMetadata: { promptTokenCount: 60, candidatesTokenCount: 5, totalTokenCount: 65 } }]]);
}

function responses(response, body) {
  const tools = Object.fromEntries((body.tools ?? []).map((tool) => [tool.name, tool.parameters]));
  const messages = (body.input ?? []).map((item) => ({
    text: JSON.stringify(item.content ?? ""),
    results: /^(function|custom_tool)_call_output$/.test(item.type) ? 1 : 0,
  }));
  const step = next(messages, tools);
  const item = step.name
    ? { type: "function_call", id: id(), call_id: id(), name: step.name, arguments: JSON.stringify(step.args) }
    : { type: "message", id: id(), role: "assistant", content: [{ type: "output_text", text: step.text }] };
  const usage = { input_tokens: 70, input_tokens_details: { cached_tokens: 5 }, output_tokens: 6, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 76 };
  stream(response, [
    ["response.created", { type: "response.created", response: { id: "r1" } }],
    ["response.output_item.done", { type: "response.output_item.done", output_index: 0, item }],
    ["response.completed", { type: "response.completed", response: { id: "r1", usage } }],
  ]);
}

function chat(response, body) {
  const tools = Object.fromEntries((body.tools ?? []).map((tool) => [tool.function.name, tool.function.parameters]));
  const messages = (body.messages ?? []).filter((message) => ["user", "tool"].includes(message.role)).map((message) => ({
    text: JSON.stringify(message.content),
    results: message.role === "tool" ? 1 : 0,
  }));
  const step = next(messages, tools);
  const usage = { prompt_tokens: 80, completion_tokens: 4, total_tokens: 84 };
  const call = step.name && { id: id(), type: "function", function: { name: step.name, arguments: JSON.stringify(step.args) } };
  const reason = call ? "tool_calls" : "stop";
  const shared = { id: id(), created: 1, model: body.model };
  if (!body.stream) {
    const message = { role: "assistant", content: step.text ?? "", ...(call ? { tool_calls: [call] } : {}) };
    return json(response, { ...shared, object: "chat.completion", choices: [{ index: 0, message, finish_reason: reason }], usage });
  }
  const delta = { role: "assistant", ...(call ? { tool_calls: [{ index: 0, ...call }] } : { content: step.text }) };
  const chunk = (delta, reason) => ["", { ...shared, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: reason }], usage: reason ? usage : null }];
  stream(response, [chunk(delta, null), chunk({}, reason), ["", "[DONE]"]]);
}

const server = createServer((request, response) => {
  let text = "";
  request.on("data", (piece) => (text += piece));
  request.on("end", () => {
    const url = request.url ?? "";
    const body = text.startsWith("{") ? JSON.parse(text) : {};
    console.error(request.method, url, text.length);
    if (url.includes("/messages/count")) return json(response, { input_tokens: 10 });
    if (url.includes("/v1/messages")) return anthropic(response, body);
    if (url.includes("streamGenerateContent")) return gemini(response, body);
    if (url.includes("enerateContent")) return json(response, { candidates: [{ content: { role: "model", parts: [{ text: '{"reasoning":"x","next_speaker":"user","model_choice":"flash"}' }] }, finishReason: "STOP" }] });
    if (url.includes("responses")) return responses(response, body);
    if (url.includes("chat/completions")) return chat(response, body);
    return json(response, {}, 404);
  });
});
server.listen(0, "127.0.0.1", () => writeFileSync(process.argv[2], String(server.address().port)));
