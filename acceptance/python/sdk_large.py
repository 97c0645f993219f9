"""Large things. The SDK takes no message above 1 MiB from a socket: it would wait for ever for what does not arrive."""

import sys

from trustgraph.api import AgentAnswer, Api
from trustgraph.api.exceptions import ProtocolException, TrustGraphException

url = sys.argv[1]
query = "https://trustgraph.ai/ns/query"
retrieval = "urn:graph:retrieval"
# A text that repeats itself would be stopped: models that write one do not come to an end.
questions = [f"Question {number}: " + " ".join(f"x\u00e4{word}" for word in range(48_000)) for number in range(4)]


def expect_refusal(act):
    try:
        result = act()
    except (ProtocolException, TrustGraphException) as error:
        assert len(str(error)) > 10, error
        return str(error)
    raise SystemExit(f"nothing was raised, but: {str(result)[:200]!r}")


with Api(url, timeout=60) as api:
    rest, flow = api.flow().id("default"), api.socket().flow("default")
    for question in questions:
        chunks = list(flow.agent(question, streaming=True, pattern="react"))
        said = "".join(chunk.content for chunk in chunks if isinstance(chunk, AgentAnswer))
        assert said == f"The script answers: {question}", (len(said), len(question))
    whole = flow.agent(questions[0], streaming=False, pattern="react")
    said = "".join(chunk.content for chunk in whole if isinstance(chunk, AgentAnswer))
    assert said == f"The script answers: {questions[0]}", len(said)
    assert rest.agent(questions[0]) == said

    # Together these are too much for one message.
    refusal = expect_refusal(lambda: flow.triples_query(p=query, g=retrieval, limit=1000))
    assert "stream" in refusal or "limit" in refusal, refusal
    streamed = sum(flow.triples_query_stream(p=query, g=retrieval, limit=1000), [])
    assert {triple["o"]["v"] for triple in streamed} == set(questions), len(streamed)
    frames = flow.sparql_query_stream(f"SELECT ?q WHERE {{ ?s <{query}> ?q }}", batch_size=100)
    rows = [binding["values"][0]["v"] for frame in frames for binding in frame["bindings"]]
    assert set(rows) == set(questions), len(rows)
    assert len(rest.triples_query(p=query, g=retrieval)) == len(streamed)

    # Nothing that the client sends makes the server hang up without a word.
    for size in [1_500_000, 20_000_000]:
        print(size, expect_refusal(lambda: list(flow.agent("x" * size, streaming=True))), flush=True)
        print(size, expect_refusal(lambda: rest.agent("x" * size)), flush=True)

print("large: all well")
