"""The tools of a domain of tau2-bench as an MCP server, for the acceptance tests.

    python tau2_server.py FOLDER DOMAIN PORT

FOLDER is where `cargo xtask` has unpacked the package `inspect_evals`; DOMAIN is `airline` or `retail`. Tools and database
are the package's own. Beside `/mcp`, the tests use `/tasks`, `/begin`, `/kill` and `/state`: see below.
"""

import functools
import hashlib
import json
import pathlib
import sys
import types
import typing
import urllib.request

import pydantic
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

# What only looks; everything else changes the database, or somebody's day.
READS = ("get_", "find_", "search_", "list_", "calculate")
# What the benchmark itself leaves out when it makes the state that is right.
NOT_OF_THE_DATABASE = ("calculate", "transfer_to_human_agents")


class StoreModel(pydantic.BaseModel):
    """What the toolkits of the package derive from. Here a toolkit is an object like any other."""


class Domain:
    """The package's toolkit, functions and tasks of one domain, and what was done with them."""

    def __init__(self, folder: str, name: str):
        # The framework around the package (`inspect_ai`) is not installed: only a few of its names are needed.
        stand_in("inspect_ai")
        stand_in("inspect_ai.tool", ToolError=ToolError, Tool=typing.Callable, tool=lambda make: make)
        stand_in("inspect_ai.util", StoreModel=StoreModel, store_as=lambda *_: self.toolkit)
        stand_in("inspect_ai.model", Content=object, ContentText=object)
        stand_in("toml")
        # Without what stands in their `__init__.py`, which loads everything.
        for package in ["inspect_evals", "inspect_evals.tau2", f"inspect_evals.tau2.{name}"]:
            stand_in(package).__path__ = [f"{folder}/{package.replace('.', '/')}"]
        title = f"{name.capitalize()}AgentTools"
        module = __import__(f"inspect_evals.tau2.{name}.{title}", fromlist=[title])
        functions = __import__(f"inspect_evals.tau2.{name}.tools", fromlist=["tools"])
        tasks = pathlib.Path(folder, "inspect_evals/tau2/data/domains", name, "tasks.json").read_text("utf-8")
        self.make = getattr(module, title)
        self.functions = {make.__name__: make() for make in getattr(functions, f"all_{name}_tools")}
        self.tasks = {task["id"]: (task["evaluation_criteria"] or {}).get("actions") or [] for task in json.loads(tasks)}
        first = self.make()
        first.initialize()
        self.database = type(first.db)
        self.untouched = first.db.model_dump_json()
        self.begin()

    def begin(self) -> None:
        """A database in which nothing was done."""
        self.toolkit = self.fresh()
        # Every call that was made, with what came of it.
        self.journal: list[dict] = []
        self.arrived = 0
        # When the program that calls is to be killed: `url`, `call`, `moment`.
        self.killing: dict | None = None

    def fresh(self) -> typing.Any:
        return self.make(initialized=True, db=self.database.model_validate_json(self.untouched))

    def right(self, actions: list[dict]) -> str:
        """The state that these actions give without any agent."""
        toolkit = self.fresh()
        for action in actions:
            if action["name"] not in NOT_OF_THE_DATABASE:
                try:
                    getattr(toolkit, action["name"])(**action["arguments"])
                except ToolError:
                    pass
        return fingerprint(toolkit)

    def is_time_to_kill(self, moment: str) -> bool:
        """Lets the test kill the program if this is the moment, and goes on when it is dead."""
        if not self.killing or self.killing["moment"] != moment or self.killing["call"] != self.arrived:
            return False
        url, self.killing = self.killing["url"], None
        urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=60).close()
        return True

    def watched(self, name: str) -> typing.Callable:
        """A function with its calls on record. Nothing else is done meanwhile: a call is made wholly or not at all."""
        function = self.functions[name]

        @functools.wraps(function)
        async def call(**arguments):
            self.arrived += 1
            if self.is_time_to_kill("lost"):
                raise ToolError("lost on its way")
            self.is_time_to_kill("before")
            entry = {"tool": name, "arguments": plain(arguments)}
            self.journal.append(entry)
            try:
                entry["result"] = await function(**arguments)
                return entry["result"]
            except ToolError as error:
                entry["result"] = str(error)
                raise
            finally:
                self.is_time_to_kill("after")

        return call


def stand_in(name: str, **members) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def fingerprint(toolkit: typing.Any) -> str:
    """Of the whole database, to the letter."""
    return hashlib.sha256(toolkit.db.model_dump_json().encode()).hexdigest()


def plain(value: typing.Any) -> typing.Any:
    """What a function was called with, as it was sent."""
    if isinstance(value, pydantic.BaseModel):
        return plain(value.model_dump())
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


folder, name, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
domain = Domain(folder, name)
server = MCPServer(name)
for function in domain.functions:
    hints = ToolAnnotations(read_only_hint=function.startswith(READS))
    server.add_tool(domain.watched(function), name=function, annotations=hints, structured_output=False)


@server.custom_route("/tasks", methods=["GET"])
async def tasks(_: Request) -> Response:
    """The actions that solve each task."""
    return JSONResponse(domain.tasks)


@server.custom_route("/begin", methods=["POST"])
async def begin(request: Request) -> Response:
    """Begins a task; the answer is the state that is right in the end."""
    domain.begin()
    return JSONResponse({"right": domain.right(domain.tasks[(await request.json())["task"]])})


@server.custom_route("/kill", methods=["POST"])
async def kill(request: Request) -> Response:
    """Calls are counted anew; the program is to be killed at one of them."""
    domain.arrived, domain.killing = 0, await request.json()
    return JSONResponse({})


@server.custom_route("/state", methods=["GET"])
async def state(_: Request) -> Response:
    return JSONResponse({"state": fingerprint(domain.toolkit), "journal": domain.journal})


uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")
