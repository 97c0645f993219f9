"""An MCP server with one tool: when is high tide in a port? The times are invented.

    pip install mcp
"""

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

TIMES = {"Arbroath": "03:12 and 15:36", "Brest": "05:48 and 18:10", "Genoa": "never: there is next to no tide"}

server = MCPServer("tides")


# It changes nothing, so a call may be made again after a crash. Tools that do not say so are taken to be unsafe.
@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def tide(port: str) -> str:
    """The times of high tide in a port today."""
    # A model may write more than the name.
    for name, times in TIMES.items():
        if name in port:
            return f"High tide in {name}: {times}"
    # What is raised is an error that the model is shown.
    raise ValueError(f"no times for {port}; ports: {', '.join(TIMES)}")


server.run("stdio")
