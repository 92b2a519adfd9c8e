// A language model for agents, on loopback: it asks each agent to write `made.txt` in its folder with a tool, and is
// done when the tool has answered. It speaks Anthropic's Messages, OpenAI's Responses and Chat Completions, and
// Gemini's API, as far as the agents need them. The port is written to the file that is named first.
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";

const WORDS = "Wrote made.txt.";

/** Sends events of a stream. */
function stream(response, events) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const [event, data] of events) {
    response.write((event ? `event: ${event}\n` : "") + `data: ${JSON.stringify(data)}\n\n`);
  }
  response.end();
}

function json(response, value, status = 200) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

/** The folder in which the agent works, as it tells its model. */
function folder(body) {
  return (body.match(/\/[^"\\\s`'<>]*teddy\/worktrees\/[^"\\\s`'<>]+/) ?? ["."])[0].replace(/[.,)]+$/, "");
}

function anthropic(response, body, file) {
  const usage = { input_tokens: 50, output_tokens: 1, cache_read_input_tokens: 7, cache_creation_input_tokens: 3 };
  const start = ["message_start", { type: "message_start", message: { id: "m1", type: "message", role: "assistant", model: "fake", content: [], stop_reason: null, usage } }];
  const end = (reason) => [
    ["content_block_stop", { type: "content_block_stop", index: 0 }],
    ["message_delta", { type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 9 } }],
    ["message_stop", { type: "message_stop" }],
  ];
  const block = (content, delta) => [
    ["content_block_start", { type: "content_block_start", index: 0, content_block: content }],
    ["content_block_delta", { type: "content_block_delta", index: 0, delta }],
  ];
  const last = body.lastIndexOf('"role":"user"');
  const isDone = body.slice(last).includes('"tool_result"') || !body.includes('"name":"Write"');
  const events = isDone
    ? [...block({ type: "text", text: "" }, { type: "text_delta", text: WORDS }), ...end("end_turn")]
    : [...block({ type: "tool_use", id: `toolu_${Date.now()}`, name: "Write", input: {} }, { type: "input_json_delta", partial_json: JSON.stringify({ file_path: file, content: `claude ${Date.now()}\n` }) }), ...end("tool_use")];
  stream(response, [start, ...events]);
}

function gemini(response, body, file) {
  const contents = JSON.parse(body).contents ?? [];
  const last = JSON.stringify(contents.at(-1) ?? "");
  const isDone = last.includes('"functionResponse"') || !body.includes('"write_file"');
  const part = isDone ? { text: WORDS } : { functionCall: { name: "write_file", args: { file_path: file, content: `gemini ${Date.now()}\n` } } };
  stream(response, [["", { candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP" }], usageMetadata: { promptTokenCount: 60, candidatesTokenCount: 5, totalTokenCount: 65 } }]]);
}

function responses(response, body) {
  const input = JSON.parse(body).input ?? [];
  const isDone = /function_call_output|custom_tool_call_output/.test(JSON.stringify(input.at(-1) ?? ""));
  const script = `echo codex $$ > made.txt`;
  const isExec = body.includes('"exec_command"');
  const call = { type: "function_call", id: "i1", call_id: `c${Date.now()}`, name: isExec ? "exec_command" : "shell", arguments: JSON.stringify(isExec ? { cmd: script } : { command: ["sh", "-c", script] }) };
  const item = isDone ? { type: "message", id: "i1", role: "assistant", content: [{ type: "output_text", text: WORDS }] } : call;
  const usage = { input_tokens: 70, input_tokens_details: { cached_tokens: 5 }, output_tokens: 6, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 76 };
  stream(response, [
    ["response.created", { type: "response.created", response: { id: "r1" } }],
    ["response.output_item.done", { type: "response.output_item.done", output_index: 0, item }],
    ["response.completed", { type: "response.completed", response: { id: "r1", usage } }],
  ]);
}

function chat(response, body, file) {
  const messages = JSON.parse(body).messages ?? [];
  const isDone = messages.at(-1)?.role === "tool" || !/"name":"write"/.test(body);
  const call = { index: 0, id: `c${Date.now()}`, type: "function", function: { name: "write", arguments: JSON.stringify({ filePath: file, content: `chat ${Date.now()}\n` }) } };
  const delta = isDone ? { role: "assistant", content: WORDS } : { role: "assistant", tool_calls: [call] };
  const chunk = (part, reason) => ["", { id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: part, finish_reason: reason }], usage: reason ? { prompt_tokens: 80, completion_tokens: 4, total_tokens: 84 } : null }];
  stream(response, [chunk(delta, null), chunk({}, isDone ? "stop" : "tool_calls")]);
}

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    const url = request.url ?? "";
    const file = `${folder(body)}/made.txt`;
    console.error(request.method, url, body.length, file);
    if (url.startsWith("/v1/messages/count")) return json(response, { input_tokens: 10 });
    if (url.startsWith("/v1/messages")) return anthropic(response, body, file);
    if (url.includes("streamGenerateContent")) return gemini(response, body, file);
    if (url.includes("enerateContent")) return json(response, { candidates: [{ content: { role: "model", parts: [{ text: '{"reasoning":"x","next_speaker":"user","model_choice":"flash"}' }] }, finishReason: "STOP" }] });
    if (url.includes("responses")) return responses(response, body);
    if (url.includes("chat/completions")) return chat(response, body, file);
    return json(response, {}, 404);
  });
});
server.listen(0, "127.0.0.1", () => writeFileSync(process.argv[2], String(server.address().port)));
