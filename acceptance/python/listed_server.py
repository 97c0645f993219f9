"""An MCP server over standard input and output whose tools stand in a file.

    python listed_server.py FILE

Each line of FILE is a tool: `name`, `description`, `schema` and, if calls are not to be answered with what they are, `answer`.
None of them changes anything, and none looks at what it is called with.
"""

import asyncio
import json
import pathlib
import sys

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

# Small enough for a list to have several.
PAGE = 100

lines = pathlib.Path(sys.argv[1]).read_text("utf-8").splitlines()
listed = {tool["name"]: tool for tool in map(json.loads, lines)}


def told(tool: dict) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=True)
    schema = tool["schema"]
    return types.Tool(name=tool["name"], description=tool["description"], input_schema=schema, annotations=hints)


async def list_tools(_, params) -> types.ListToolsResult:
    start = int(params.cursor) if params and params.cursor else 0
    tools = [told(tool) for tool in list(listed.values())[start : start + PAGE]]
    more = str(start + PAGE) if start + PAGE < len(listed) else None
    return types.ListToolsResult(tools=tools, next_cursor=more)


async def call_tool(_, params) -> types.CallToolResult:
    answer = listed[params.name].get("answer")
    if answer is None:
        answer = f"made: {params.name} {json.dumps(params.arguments, sort_keys=True)}"
    return types.CallToolResult(content=[types.TextContent(type="text", text=answer)])


async def main() -> None:
    server = Server("listed", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
