"""The published MCP client against Trellis: at its address (URL [TOKEN]), or as a program that it starts
(PROGRAM ARGUMENTS NAME=VALUE…, with the arguments as one word of JSON)."""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def server(arguments):
    first, *more = arguments
    if not first.startswith("http"):
        environment = dict(variable.split("=", 1) for variable in more[1:])
        return StdioServerParameters(command=first, args=json.loads(more[0]), env=environment)
    address = f"{first}mcp"
    if not more:
        return address
    headers = {"Authorization": f"Bearer {more[0]}"}
    return streamable_http_client(address, http_client=httpx2.AsyncClient(headers=headers, timeout=60))


async def asks(client):
    told = []

    async def progress(done, total, message):
        told.append((done, message))

    asked = await client.call_tool("ask", {"question": "Who was Ada?"}, progress_callback=progress)
    answer = asked.structured_content
    assert not asked.is_error and "The script answers: Who was Ada?" in asked.content[0].text, asked
    assert answer["state"] == "answered" and answer["reason"] == "final-answer" and answer["ended"], answer
    assert answer["verified"] is True and answer["faults"] == [], answer
    numbers = [done for done, _ in told]
    assert len(numbers) > 3 and numbers == sorted(set(numbers)), told
    assert answer["run_id"] in told[0][1], told
    assert answer["run_id"] in asked.content[0].text, asked
    return answer["run_id"]


async def explains(client, run_id):
    run = {"run_id": run_id}
    explained = await client.call_tool("explain_run", run)
    text = explained.content[0].text
    assert text == explained.structured_content["explanation"], explained
    for words in ("Question", "Who was Ada?", "search-notes", "pattern", "(mcp)"):
        assert words in text, (words, text)
    assert "\x1b" not in text, text

    decided = (await client.call_tool("list_decisions", run)).structured_content["decisions"]
    made = {decision["decision"]: decision for decision in decided}
    assert made["pattern"]["chosen"] == ["react"] and "supervisor" in made["pattern"]["options"], made
    assert made["tool"]["chosen"] == ["search-notes"] and made["tool"]["at"], made

    listed = await client.call_tool("list_runs", {"limit": 5, "state": "answered"})
    assert listed.structured_content["runs"][0]["run_id"] == run_id, listed
    again = await client.call_tool("wait_for_run", run)
    assert again.structured_content["state"] == "answered", again


async def searches(client):
    found = (await client.call_tool("search_knowledge", {"query": "tonnes"})).structured_content
    assert "24 tonnes" in found["passages"][0]["text"] and found["passages"][0]["document"], found
    iri = "https://example.org/bridge"
    known = (await client.call_tool("search_knowledge", {"about": iri})).structured_content
    assert [statement["object"] for statement in known["statements"]] == ['"The old bridge"'], known


async def refuses(client):
    for name, arguments, words in (
        ("ask", {}, "`question` is missing"),
        ("ask", {"question": "Who?", "patern": "react"}, "patern"),
        ("ask", {"question": "Who?", "pattern": "freestyle"}, "freestyle"),
        ("ask", {"question": "Who?", "wait": 601}, "from 0 to 600"),
        ("ask", {"question": "Who?", "limits": {"max-iterations": 0}}, "max-iterations"),
        ("ask", {"question": "Please refuse."}, "without an answer"),
        ("explain_run", {"run_id": "nobody"}, "no run `nobody`"),
        ("list_runs", {"limit": 0}, "from 1 to 100"),
        ("list_runs", {"state": "odd"}, "must be one of"),
        ("search_knowledge", {}, "give `query`"),
    ):
        refused = await client.call_tool(name, arguments)
        assert refused.is_error and words in refused.content[0].text, (name, arguments, refused)


async def gives_up(client):
    """Whoever does not wait any more ends nothing; cancel_run does."""
    late = await client.call_tool("ask", {"question": "Please keep me waiting.", "wait": 1})
    assert not late.is_error and not late.structured_content["ended"], late
    run = {"run_id": late.structured_content["run_id"]}
    try:
        async with asyncio.timeout(1):
            await client.call_tool("wait_for_run", {**run, "wait": 60})
        raise AssertionError("nobody was to answer")
    except TimeoutError:
        pass
    still = await client.call_tool("wait_for_run", {**run, "wait": 0})
    assert still.structured_content["state"] in ("queued", "running"), still
    ended = await client.call_tool("cancel_run", run)
    assert not ended.is_error and ended.structured_content["state"] == "cancelled", ended
    after = await client.call_tool("wait_for_run", run)
    assert after.is_error and "was cancelled" in after.content[0].text, after


async def main():
    for mode in ("auto", "legacy"):
        async with Client(server(sys.argv[1:]), mode=mode) as client:
            assert client.server_info.name == "trellis", client.server_info
            version = client.protocol_version
            assert version == "2026-07-28" if mode == "auto" else version >= "2025-06-18", version
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            wanted = {"ask", "wait_for_run", "decide", "cancel_run", "explain_run", "list_decisions", "list_runs"}
            wanted.add("search_knowledge")
            assert set(tools) == wanted, tools
            assert tools["explain_run"].annotations.read_only_hint and not tools["ask"].annotations.read_only_hint
            assert all(tool.output_schema for tool in tools.values())
            run = await asks(client)
            await explains(client, run)
            await searches(client)
            await refuses(client)
            await gives_up(client)
    print("mcp: all well")


asyncio.run(main())
