"""Agents, prompts and models through the SDK: REST and socket, one after the other and asynchronously."""

import asyncio
import sys
import threading

from trustgraph.api import (
    AgentAnswer,
    AgentObservation,
    AgentThought,
    Api,
    Conclusion,
    ProvenanceEvent,
    Question,
    RAGChunk,
)

url = sys.argv[1]
question = "Who was Ada?"
answer = "The script answers: Who was Ada?"


def text_of(chunks, kind):
    return "".join(chunk.content for chunk in chunks if isinstance(chunk, kind))


def check_dialog(chunks):
    assert text_of(chunks, AgentAnswer) == answer, chunks
    assert "look" in text_of(chunks, AgentThought), chunks
    assert "Sample data" in text_of(chunks, AgentObservation), chunks
    ends = [chunk for chunk in chunks if isinstance(chunk, AgentAnswer) and chunk.end_of_dialog]
    assert ends == [chunks[-1]], chunks
    assert ends[0].in_token > 0 and ends[0].out_token > 0 and ends[0].model, ends


def rest(api):
    flow = api.flow().id("default")
    assert flow.agent(question) == answer
    assert flow.agent(question, group=["default"], state="begun", history=[]) == answer
    said = flow.text_completion(system="Be brief.", prompt="Say hello.")
    assert said.text == "Scripted reply to: Say hello." and said.in_token > 0 and said.model, said
    assert "Who was Ada?" in flow.prompt("question", {"question": question})


def socket(api):
    flow = api.socket().flow("default")
    check_dialog(list(flow.agent(question, streaming=True)))
    whole = list(flow.agent(question, streaming=False))
    check_dialog(whole)
    assert sum(isinstance(chunk, AgentAnswer) for chunk in whole) == 1, whole
    streamed = [chunk.message_id for chunk in flow.agent(question, streaming=True)]
    assert all(streamed), "every message has an id"
    for pattern in ["react", "plan-then-execute", "supervisor"]:
        chunks = list(flow.agent(question, streaming=True, pattern=pattern))
        assert question in text_of(chunks, AgentAnswer), chunks
    events = [item for item in flow.agent_explain(question, collection="default") if isinstance(item, ProvenanceEvent)]
    assert isinstance(events[0].entity, Question) and events[0].entity.query == question, events[0]
    assert isinstance(events[-1].entity, Conclusion), events[-1]
    assert all(event.explain_graph == "urn:graph:retrieval" for event in events), events
    said = flow.text_completion(system="Be brief.", prompt="Say hello.", streaming=False)
    assert said.text == "Scripted reply to: Say hello.", said
    chunks = list(flow.text_completion(system="Be brief.", prompt="Say hello. " * 40, streaming=True))
    assert text_of(chunks, RAGChunk) == "Scripted reply to: " + ("Say hello. " * 40).strip(), chunks
    assert len(chunks) > 5, "a long text arrives piece by piece"
    assert chunks[-1].out_token > 0, chunks[-1]
    said = flow.prompt("question", {"question": question}, streaming=False)
    chunks = list(flow.prompt("question", {"question": question}, streaming=True))
    assert "".join(chunk.content for chunk in chunks) == said.text and question in said.text, chunks
    assert flow.list_models()[0]["id"] == "openai/scripted-1"


async def asynchronous():
    async with Api(url) as api:
        flow = api.async_socket().flow("default")
        chunks = [chunk async for chunk in await flow.agent(question, streaming=True)]
        # The asynchronous client passes what explains the answer on as empty chunks.
        check_dialog([chunk for chunk in chunks if isinstance(chunk, (AgentThought, AgentObservation, AgentAnswer))])
        said = await flow.text_completion(system="Be brief.", prompt="Say hello.")
        assert said.text == "Scripted reply to: Say hello.", said
        chunks = [chunk async for chunk in await flow.text_completion(system="", prompt="Say hello.", streaming=True)]
        assert "".join(chunk.content for chunk in chunks) == said.text, chunks
        assert question in await flow.prompt("question", {"question": question})
        chunks = [text async for text in await flow.prompt("question", {"question": question}, streaming=True)]
        assert question in "".join(chunks), chunks

        async def ask(text):
            chunks = [chunk async for chunk in await flow.agent(text, streaming=True)]
            assert text_of(chunks, AgentAnswer) == f"The script answers: {text}", chunks

        # Many questions share the socket at the same time.
        await asyncio.gather(*(ask(f"Question number {number}?") for number in range(8)))

        rest = api.async_flow().id("default")
        assert (await rest.agent(question))["answer"] == answer
        assert (await rest.text_completion(system="", prompt="Say hello.")).text == said.text


with Api(url) as api:
    rest(api)
    socket(api)
asyncio.run(asynchronous())

# Clients in parallel, each with a socket of its own.
failures = []


def alone(number):
    try:
        with Api(url) as api:
            text = f"Question of client {number}?"
            chunks = list(api.socket().flow("default").agent(text, streaming=True))
            assert text_of(chunks, AgentAnswer) == f"The script answers: {text}", chunks
    except BaseException as error:
        failures.append(error)


threads = [threading.Thread(target=alone, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures

print("agent: all well")
