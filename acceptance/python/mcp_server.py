"""A server of the MCP package, over standard input and output or, with an argument, over HTTP at that port."""

import asyncio
import os
import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Elicit, Resolve
from pydantic import BaseModel, Field

server = MCPServer("weather")


@server.tool()
def forecast(place: str) -> str:
    """The forecast for a place."""
    if "Atlantis" in place:
        raise ValueError("there is no such place")
    return f"Snow tomorrow: {place}"


@server.tool()
def fall_over(place: str) -> str:
    """Ends the server."""
    print("I fall over", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
async def wait(seconds: float) -> str:
    """Waits."""
    await asyncio.sleep(seconds)
    return "waited"


class Party(BaseModel):
    people: int = Field(ge=1, description="How many come")


async def ask_for_party() -> Elicit[Party]:
    return Elicit("How many people?", Party)


@server.tool()
def book(place: str, party: Annotated[ElicitationResult[Party], Resolve(ask_for_party)]) -> str:
    """Books a table, and asks a person for how many."""
    if not isinstance(party, AcceptedElicitation):
        return f"Nothing was booked: {place}"
    return f"A table for {party.data.people}: {place}"


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
