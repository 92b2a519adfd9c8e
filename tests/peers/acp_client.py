"""Drives `teddy acp` with the Python library of the protocol: one prompt, allowed."""

import asyncio
import os
import sys

import acp


class Editor(acp.Client):
    """An editor that allows what it is asked and counts what it is told."""

    def __init__(self):
        self.updates = []

    async def request_permission(self, options, session_id, tool_call, **_):
        allowed = next(it for it in options if it.kind == "allow_once")
        outcome = {"outcome": "selected", "optionId": allowed.option_id}
        return acp.RequestPermissionResponse.model_validate({"outcome": outcome})

    async def session_update(self, session_id, update, **_):
        self.updates.append(type(update).__name__)


async def main(program, folder):
    editor = Editor()
    env = dict(os.environ)
    async with acp.spawn_agent_process(editor, program, "acp", env=env) as (agent, _):
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
    print("ok", *kinds)


asyncio.run(main(sys.argv[1], sys.argv[2]))
