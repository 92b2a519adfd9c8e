"""Drives `teddy acp` with the protocol's Python library: a prompt, then the commands in a new process."""

import asyncio
import os
import subprocess
import sys

import acp


class Editor(acp.Client):
    """An editor that allows each request and collects the updates."""

    def __init__(self):
        self.updates = []
        self.text = ""

    async def request_permission(self, options, session_id, tool_call, **_):
        allowed = next(it for it in options if it.kind == "allow_once")
        outcome = {"outcome": "selected", "optionId": allowed.option_id}
        return acp.RequestPermissionResponse.model_validate({"outcome": outcome})

    async def session_update(self, session_id, update, **_):
        self.updates.append(type(update).__name__)
        if self.updates[-1] == "AgentMessageChunk":
            self.text += update.content.text


async def main(program, folder):
    editor = Editor()
    start = lambda: acp.spawn_agent_process(editor, program, "acp", env=dict(os.environ))
    async with start() as (agent, _):
        told = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert told.protocol_version == 1, told
        session = await agent.new_session(cwd=folder, mcp_servers=[])
        done = await agent.prompt(
            session_id=session.session_id, prompt=[acp.text_block("make d")]
        )
        assert done.stop_reason == "end_turn", done
    with open(os.path.join(folder, "d.txt"), encoding="utf-8") as file:
        assert file.read() == "d\n"
    kinds = sorted(set(editor.updates))
    assert "ToolCallStart" in kinds and "AgentPlanUpdate" in kinds, kinds

    opened = {"session_id": session.session_id, "cwd": folder, "mcp_servers": []}
    async with start() as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        listed = await agent.list_sessions(cwd=folder)
        assert session.session_id in [it.session_id for it in listed.sessions], listed
        await agent.load_session(**opened)
        assert "UserMessageChunk" in editor.updates, editor.updates
        await agent.resume_session(**opened)

        for command, exists, shows in [
            ("/diff", True, "+d"),
            ("/undo", False, "delete d.txt"),
            ("/redo", True, "write d.txt"),
            ("/restore 0", False, "delete d.txt"),
            ("/restore 1", True, "write d.txt"),
            ("/land Add d", True, "Add d"),
        ]:
            editor.text = ""
            prompt = [acp.text_block(command)]
            done = await agent.prompt(session_id=session.session_id, prompt=prompt)
            assert done.stop_reason == "end_turn", done
            assert os.path.exists(os.path.join(folder, "d.txt")) == exists, command
            assert shows in editor.text, (command, editor.text)
    subject = subprocess.check_output(["git", "-C", folder, "log", "-1", "--format=%s"], text=True)
    assert subject == "Add d\n", subject
    print("ok", *kinds)


asyncio.run(main(sys.argv[1], sys.argv[2]))
