// Drives `teddy acp` with the TypeScript library of the protocol: one prompt, allowed, the session opened
// again, and the commands.
//
//   node acp_client.mjs PROGRAM PROJECT DIRECTORY    (which has node_modules)
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [program, project, directory] = process.argv.slice(2);
const library = `${directory}/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js`;
const acp = await import(pathToFileURL(library));
const { agent: methods, client: asked } = acp.methods;
const updates = [];
let text = "";
let questions = 0;

function check(holds, what) {
  if (!holds) throw new Error(what);
}

const child = spawn(program, ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const editor = acp
  .client()
  .onRequest(asked.session.requestPermission, ({ params }) => {
    questions += 1;
    const { optionId } = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .onNotification(asked.session.update, ({ params }) => {
    updates.push(params.update.sessionUpdate);
    if (updates.at(-1) === "agent_message_chunk") text += params.update.content.text;
  });

await editor.connectWith(stream, async (teddy) => {
  const params = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} };
  const about = await teddy.request(methods.initialize, params);
  check(about.protocolVersion === 1 && about.agentCapabilities.loadSession, JSON.stringify(about));
  const mcpServers = [{ name: "files", command: "/bin/false", args: [], env: [] }];
  const { sessionId } = await teddy.request(methods.session.new, { cwd: project, mcpServers });
  const prompt = (text) =>
    teddy.request(methods.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

  const done = await prompt("make d");
  check(done.stopReason === "end_turn", JSON.stringify(done));
  check(questions === 1, `${questions} questions`);
  check(readFileSync(`${project}/d.txt`, "utf8") === "d\n", "d.txt");
  const { sessions } = await teddy.request(methods.session.list, { cwd: project });
  check(sessions.some((session) => session.sessionId === sessionId), JSON.stringify(sessions));

  await teddy.request(methods.session.load, { sessionId, cwd: project, mcpServers });
  check(updates.includes("user_message_chunk"), updates.join(" "));
  await teddy.request(methods.session.resume, { sessionId, cwd: project, mcpServers });
  for (const [command, exists, shows] of [
    ["/diff", true, "+d"],
    ["/undo", false, "delete d.txt"],
    ["/redo", true, "write d.txt"],
    ["/restore 0", false, "delete d.txt"],
    ["/restore 1", true, "write d.txt"],
    ["/land Add d", true, "Add d"],
  ]) {
    text = "";
    const ended = await prompt(command);
    check(ended.stopReason === "end_turn", JSON.stringify(ended));
    check(existsSync(`${project}/d.txt`) === exists, command);
    check(text.includes(shows), `${command}: ${text}`);
  }
});
console.log("ok", ...[...new Set(updates)].sort());
child.kill();
