"""What goes wrong on the server arrives as an exception of the SDK with readable words."""

import asyncio
import sys

from trustgraph.api import Api, ConfigValue
from trustgraph.api.exceptions import ProtocolException, TrustGraphException

url = sys.argv[1]


def expect(words, act):
    try:
        result = act()
        if hasattr(result, "__next__"):
            result = list(result)
    except (ProtocolException, TrustGraphException) as error:
        assert words in str(error), f"{words!r} is missing in: {error}"
        return error
    raise SystemExit(f"nothing was raised for {words!r}, but: {result!r}")


async def expect_async(words, act):
    try:
        result = await act()
        if hasattr(result, "__anext__"):
            result = [one async for one in result]
    except (ProtocolException, TrustGraphException) as error:
        assert words in str(error), f"{words!r} is missing in: {error}"
        return error
    raise SystemExit(f"nothing was raised for {words!r}, but: {result!r}")


refusal = "the script refuses this question"
with Api(url) as api:
    rest, socket = api.flow().id("default"), api.socket().flow("default")
    nowhere_rest, nowhere = api.flow().id("zz"), api.socket().flow("zz")

    expect("zz", lambda: nowhere_rest.agent("Who was Ada?"))
    expect("zz", lambda: nowhere.agent("Who was Ada?", streaming=True))
    expect("zz", lambda: nowhere.agent("Who was Ada?", streaming=False))
    expect("zz", lambda: nowhere.triples_query(s="urn:x"))
    expect("zz", lambda: nowhere.text_completion("", "Hello"))

    expect("question", lambda: rest.agent(""))
    expect("question", lambda: socket.agent("", streaming=True))
    expect(refusal, lambda: rest.agent("Please refuse."))
    error = expect(refusal, lambda: socket.agent("Please refuse.", streaming=True))
    assert type(error).__name__ == "AgentError", type(error)
    expect(refusal, lambda: rest.text_completion("", "Please refuse."))
    expect(refusal, lambda: socket.text_completion("", "Please refuse."))
    expect(refusal, lambda: socket.text_completion("", "Please refuse.", streaming=True))

    expect("nothing-like-it", lambda: rest.prompt("nothing-like-it", {}))
    expect("nothing-like-it", lambda: socket.prompt("nothing-like-it", {}))
    expect("nothing-like-it", lambda: socket.prompt("nothing-like-it", {}, streaming=True))

    expect("embedding model", lambda: rest.embeddings(["Who?"]))
    expect("not available", lambda: api.knowledge().list_kg_cores())

    expect("", lambda: rest.sparql_query("SELECT ?s WHERE {"))
    expect("", lambda: socket.sparql_query_stream("SELECT ?s WHERE {"))
    expect("mcp", lambda: rest.mcp_tool("nothing-like-it", {}))
    expect("mcp", lambda: socket.mcp_tool("nothing-like-it", {}))
    expect("tool/bad", lambda: api.config().put([ConfigValue("tool", "bad", "no JSON")]))
    expect("", lambda: api.library().get_document_content("urn:nothing"))
    expect("", lambda: api.library().remove_document("urn:nothing"))
    expect("", lambda: api.library().add_document(b"x", "urn:x", None, "X", "", kind=""))
    expect("zz", lambda: api.flow().get("zz"))
    expect("zz", lambda: api.flow().stop("zz"))
    expect("zz", lambda: api.flow().get_blueprint("zz"))

    expect("404", lambda: Api(url, workspace="nowhere").config().all())
    with Api(url, workspace="nowhere") as lost:
        expect("workspace", lambda: lost.socket().flow("default").agent("Who?"))

    # One request that went wrong does not harm the next one on the same socket.
    assert "".join(chunk.content for chunk in socket.agent("Who was Ada?", streaming=True)).endswith("Ada?")


async def asynchronous():
    async with Api(url) as api:
        socket, rest = api.async_socket().flow("default"), api.async_flow().id("default")
        await expect_async(refusal, lambda: socket.agent("Please refuse.", streaming=True))
        await expect_async(refusal, lambda: socket.text_completion("", "Please refuse."))
        await expect_async(refusal, lambda: rest.agent("Please refuse."))
        await expect_async("zz", lambda: api.async_socket().flow("zz").agent("Who?", streaming=True))
        await expect_async("zz", lambda: api.async_flow().id("zz").agent("Who?"))


asyncio.run(asynchronous())
print("errors: all well")
