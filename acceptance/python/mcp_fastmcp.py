"""FastMCP's client against Trellis: at its address (URL), or as a program that it starts (PROGRAM ARGUMENTS NAME=VALUE…, with
the arguments as one word of JSON)."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError

QUESTION = {"question": "Who was Ada?", "pattern": "react"}


def server(arguments):
    first, *more = arguments
    if first.startswith("http"):
        return StreamableHttpTransport(f"{first}mcp")
    environment = dict(variable.split("=", 1) for variable in more[1:])
    # One process has the folder at a time, so it has to go with each client.
    return StdioTransport(first, json.loads(more[0]), env=environment, keep_alive=False)


async def lists(client):
    tools = {tool.name: tool for tool in await client.list_tools()}
    wanted = {"ask", "wait_for_run", "decide", "cancel_run", "explain_run", "list_decisions", "list_runs", "search_knowledge"}
    assert set(tools) == wanted, tools
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools.values()), tools


async def asks(client):
    told = []

    async def progress(done, total, message):
        told.append((done, message))

    asked = await client.call_tool("ask", QUESTION, progress_handler=progress)
    numbers = [done for done, _ in told]
    assert len(numbers) > 3 and numbers == sorted(set(numbers)), told
    assert asked.structured_content["run_id"] in told[0][1], told
    return asked


async def asks_as_a_task(client, call_tool_task):
    task = await call_tool_task(client, "ask", QUESTION)
    ended = await task.wait(timeout=60)
    assert ended.status == "completed", ended
    asked = await task.result()
    assert asked.structured_content["run_id"] == task.task_id, (task.task_id, asked)
    # Whoever does not hold the task is brought its result all the same.
    assert (await client.call_tool("ask", QUESTION)).structured_content["state"] == "answered"
    return asked


async def is_told_why(client, asked):
    answer = asked.structured_content
    assert "The script answers: Who was Ada?" in asked.content[0].text, asked
    assert answer["state"] == "answered" and answer["ended"] and answer["verified"] is True, answer
    # What the schema of the tool promises is read into an object of Python.
    assert asked.data.run_id == answer["run_id"] and asked.data.state == "answered", asked
    explained = await client.call_tool("explain_run", {"run_id": answer["run_id"]})
    for words in ("Who was Ada?", "search-notes", "(mcp)"):
        assert words in explained.content[0].text, (words, explained)


async def is_refused(client):
    try:
        await client.call_tool("ask", {"question": "Who?", "pattern": "freestyle"})
    except ToolError as error:
        assert "freestyle" in str(error), error
    else:
        raise AssertionError("there is no such pattern")


async def main():
    for mode in ("auto", "legacy"):
        async with Client(server(sys.argv[1:]), mode=mode) as client:
            await lists(client)
            await is_told_why(client, await asks(client))
            await is_refused(client)
    # From here on every client says that it can hold tasks, and is told no progress.
    from fastmcp_tasks import call_tool_task

    async with Client(server(sys.argv[1:])) as client:
        await is_told_why(client, await asks_as_a_task(client, call_tool_task))
    print("fastmcp: all well")


asyncio.run(main())
