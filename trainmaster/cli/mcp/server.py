"""The server: lists the tools and answers their calls on standard input and output, until the input ends."""

import json
import traceback
from typing import Any

import anyio.to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from trainmaster.cli.exits import stop_for
from trainmaster.cli.mcp.changes import Session
from trainmaster.cli.mcp.tools import TABLE, read_tools
from trainmaster.orchestrator.core.documents.faults import cut, listed
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.version import VERSION

ERROR_MAX_CHARS = 4000


def serve(session: Session) -> None:
    """Serve one client until it closes standard input, with as many calls at once as anyio has threads."""

    async def list_tools(*_: object) -> types.ListToolsResult:
        tools = read_tools(is_read_only=not session.source.writable).values()
        shown = [
            types.Tool(name=each.name, description=each.description, input_schema=each.schema)
            for each in tools
        ]
        return types.ListToolsResult(tools=shown)

    async def call_tool(_: object, call: types.CallToolRequestParams) -> types.CallToolResult:
        given = (session, call.name, call.arguments or {})
        text, is_error = await anyio.to_thread.run_sync(answer_call, *given, abandon_on_cancel=True)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)

    async def run() -> None:
        server = Server("trainmaster", version=VERSION, instructions=TABLE["instructions"],
                        on_list_tools=list_tools, on_call_tool=call_tool)  # fmt: skip
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(run)


# Any: JSON that nothing has checked.
def answer_call(session: Session, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """The tool's answer as JSON and False, or why there is none, a line for each fault, and True."""
    tools = read_tools(is_read_only=not session.source.writable)
    if name not in tools:
        return f"There is no tool {name!r:.100} here; there are {listed(tools)}.", True
    if isinstance(mapping := arguments.get("set"), dict) and "set" in tools[name].schema["properties"]:
        values = {key: each if isinstance(each, str) else json.dumps(each) for key, each in mapping.items()}
        texts = json.dumps([f"{key}={value}" for key, value in values.items()])
        return cut(f"{name}: $.set: expected a list of texts KEY=VALUE; write {texts}", ERROR_MAX_CHARS), True
    if faults := schema_faults(tools[name].schema, arguments):
        return cut("\n".join(f"{name}: {fault}" for fault in faults), ERROR_MAX_CHARS), True
    try:
        return json.dumps(tools[name].answer(session, arguments)), False
    except Exception as error:
        if (known := stop_for(error)) is None:
            traceback.print_exc()
        text = known.message if known else f"{name}: {type(error).__name__}: {error}"
        return cut(text, ERROR_MAX_CHARS), True
