"""The graph through the SDK: patterns, SPARQL, and the client that explains answers."""

import asyncio
import sys

from trustgraph.api import (
    Analysis,
    Api,
    Conclusion,
    Decomposition,
    ExplainabilityClient,
    Finding,
    Observation,
    Plan,
    StepResult,
    Synthesis,
)

url = sys.argv[1]
retrieval = "urn:graph:retrieval"
query = "https://trustgraph.ai/ns/query"
questions = {"react": "Who was Ada?", "plan-then-execute": "Which plan had Ada?", "supervisor": "Which team had Ada?"}
shapes = {
    "react": [Analysis, Observation, Conclusion],
    "plan-then-execute": [Plan, StepResult, StepResult, Synthesis],
    "supervisor": [Decomposition, Finding, Synthesis, Finding, Synthesis],
}

with Api(url) as api:
    rest = api.flow().id("default")
    flow = api.socket().flow("default")
    explain = ExplainabilityClient(flow, retry_delay=0.05)
    for question in questions.values():
        assert question in "".join(chunk.content for chunk in flow.agent(question, streaming=True))

    sessions = {session.query: session for session in explain.list_sessions(collection="default")}
    assert set(sessions) == set(questions.values()), "subagents are not sessions of their own in the list"
    for pattern, question in questions.items():
        session = sessions[question]
        assert session.question_type == "agent" and explain.detect_session_type(session.uri) == "agent"
        trace = explain.fetch_agent_trace(session.uri, collection="default")
        kinds = [type(step) for step in trace["steps"]]
        assert sorted(map(str, set(kinds))) == sorted(map(str, set(shapes[pattern]))), kinds
        assert kinds == shapes[pattern], kinds
        for step in trace["steps"]:
            if isinstance(step, (Observation, Conclusion, StepResult, Finding, Synthesis)):
                content = explain.fetch_document_content(step.document, api)
                assert content and not content.startswith("["), (step, content)
        last = explain.fetch_document_content(trace["steps"][-1].document, api)
        assert question in last, last
    thought = explain.fetch_agent_trace(sessions["Who was Ada?"].uri)["steps"][0].thought
    assert "look" in explain.fetch_document_content(thought, api)

    asked = flow.triples_query(p=query, g=retrieval, limit=100)
    assert len(asked) == 5, "three questions and two goals of subagents"
    session = sessions["Who was Ada?"].uri
    about = flow.triples_query(s=session, g=retrieval, limit=100)
    assert all(triple["s"] == {"t": "i", "i": session} for triple in about) and len(about) > 4, about
    batches = list(flow.triples_query_stream(s=session, g=retrieval, batch_size=2))
    assert sum(batches, []) == about and len(batches) > 2, batches
    assert flow.triples_query(s=session, g=retrieval, limit=2) == about[:2]
    assert flow.triples_query(s="urn:nobody", g=retrieval) == []
    found = rest.triples_query(p=query, o="Who was Ada?", g=retrieval)
    assert [str(triple.s) for triple in found] == [session], found
    assert rest.triples_query(s="urn:nobody") == []

    rows = rest.sparql_query(f"SELECT ?s WHERE {{ ?s <{query}> 'Who was Ada?' }}")
    assert rows["variables"] == ["s"] and rows["bindings"] == [{"values": [{"t": "i", "i": session}]}], rows
    assert rest.sparql_query("ASK { ?s ?p ?o }")["ask-result"] is True
    made = rest.sparql_query(f"CONSTRUCT {{ ?s <urn:asked> ?q }} WHERE {{ ?s <{query}> ?q }}")
    assert len(made["triples"]) == 5, made
    frames = list(flow.sparql_query_stream("SELECT ?s ?p ?o WHERE { ?s ?p ?o }", batch_size=50))
    assert len(frames) > 2 and all(len(frame["bindings"]) <= 50 for frame in frames), len(frames)


async def asynchronous():
    async with Api(url) as api:
        for flow in [api.async_socket().flow("default"), api.async_flow().id("default")]:
            found = await flow.triples_query(s=session, p=query, g=retrieval)
            assert [triple["o"]["v"] for triple in found["response"]] == ["Who was Ada?"], found
        rows = await api.async_flow().id("default").sparql_query("ASK { ?s ?p ?o }")
        assert rows["ask-result"] is True, rows


asyncio.run(asynchronous())
print("explain: all well")
