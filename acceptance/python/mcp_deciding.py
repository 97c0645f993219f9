"""The published MCP client is asked what a run waits for: with a form if it can show one, otherwise in words.
At an address (URL), or as a program that it starts (PROGRAM ARGUMENTS NAME=VALUE…)."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

QUESTION = {"question": "Use careful-notes for Ada", "pattern": "react"}


def server(arguments):
    first, *more = arguments
    if first.startswith("http"):
        return f"{first}mcp"
    environment = dict(variable.split("=", 1) for variable in more[1:])
    return StdioServerParameters(command=first, args=json.loads(more[0]), env=environment)


async def ask(mode, answer):
    """What comes of the question if the form is answered so, and the forms that were shown."""
    shown = []

    async def callback(context, form):
        shown.append(form)
        return answer

    async with Client(server(sys.argv[1:]), mode=mode, elicitation_callback=callback if answer else None) as client:
        asked = await client.call_tool("ask", QUESTION)
        decided = (await client.call_tool("list_decisions", {"run_id": asked.structured_content["run_id"]})).structured_content
        chosen = [made["chosen"] for made in decided["decisions"] if made["decision"] == "approval"]
        return asked, shown, chosen


async def with_forms(mode):
    accept = ElicitResult(action="accept", content={"choice": "approve", "reason": "as agreed"})
    asked, shown, chosen = await ask(mode, accept)
    assert asked.structured_content["state"] == "answered" and asked.structured_content["verified"], asked
    assert chosen == [["approve"]], chosen
    assert len(shown) == 1 and "> May `careful-notes` be called" in shown[0].message, shown
    assert shown[0].requested_schema["properties"]["choice"]["enum"] == ["approve", "deny"], shown

    asked, shown, chosen = await ask(mode, ElicitResult(action="decline"))
    assert asked.structured_content["ended"] and chosen == [["deny"]] and len(shown) == 1, (asked, chosen)

    asked, shown, chosen = await ask(mode, ElicitResult(action="cancel"))
    assert asked.structured_content["state"] == "waiting" and chosen == [] and len(shown) == 1, (asked, chosen)


async def in_words(mode):
    asked, _, chosen = await ask(mode, None)
    run, text = asked.structured_content["run_id"], asked.content[0].text
    assert asked.structured_content["state"] == "waiting" and chosen == [], asked
    for words in ("approve, deny", f"trellis run decide {run}", "the tool decide"):
        assert words in text, (words, text)
    async with Client(server(sys.argv[1:]), mode=mode) as client:
        decided = await client.call_tool("decide", {"run_id": run, "choice": "approve"})
        assert not decided.is_error, decided
        done = await client.call_tool("wait_for_run", {"run_id": run})
        assert done.structured_content["state"] == "answered", done


async def main():
    over_http = sys.argv[1].startswith("http")
    await with_forms("auto")
    await in_words("auto")
    # Older versions can be asked only where the client hears what it is not waiting for.
    if not over_http:
        await with_forms("legacy")
    await in_words("legacy")
    print("deciding: all well")


asyncio.run(main())
