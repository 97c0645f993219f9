"""The published MCP client is shown the form that a tool of the published MCP server asks a person to fill in: the run waits
with it, and goes on with what the client sends."""

import asyncio
import sys

from mcp import Client
from mcp_types import ElicitResult

QUESTION = {"question": "Use book for Paris", "pattern": "react"}


async def ask(*answers):
    """What comes of the question if the form is answered so, one answer after the other, and the forms that were shown."""
    shown, left = [], list(answers)

    async def callback(context, form):
        shown.append(form)
        return left.pop(0)

    async with Client(f"{sys.argv[1]}mcp", elicitation_callback=callback) as client:
        asked = await client.call_tool("ask", QUESTION)
        run = {"run_id": asked.structured_content["run_id"]}
        decided = (await client.call_tool("list_decisions", run)).structured_content
        told = (await client.call_tool("explain_run", run | {"full": True})).content[0].text
        chosen = [made["chosen"] for made in decided["decisions"] if made["decision"] == "tool-input"]
        return asked.structured_content, shown, chosen, told


async def main():
    asked, shown, chosen, told = await ask(ElicitResult(action="accept", content={"people": 4}))
    assert asked["ended"] and asked["verified"] and chosen == [["answer"]], (asked, chosen)
    assert len(shown) == 1 and "> > How many people?" in shown[0].message, shown
    assert shown[0].requested_schema["properties"]["people"]["minimum"] == 1, shown
    assert "A table for 4: Use book for Paris" in told, told

    asked, shown, chosen, told = await ask(ElicitResult(action="decline"))
    assert asked["ended"] and chosen == [["decline"]] and "Nothing was booked: Use book for Paris" in told, (asked, chosen, told)
    print("asking: all well")


asyncio.run(main())
