"""A server of the MCP package, over standard input and output or, with an argument, over HTTP at that port."""

import asyncio
import os
import sys

from mcp.server import MCPServer

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


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
