"""The stock openai package against the scripted model: whole replies, streams, schemas, functions."""

import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
question = [{"role": "user", "content": "Say hello."}]
said = "Scripted reply to: Say hello."

model = client.models.list().data[0].id

whole = client.chat.completions.create(model=model, messages=question)
assert whole.choices[0].message.content == said, whole
assert whole.choices[0].finish_reason == "stop", whole
assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, whole

chunks = list(
    client.chat.completions.create(
        model=model, messages=question, stream=True, stream_options={"include_usage": True}
    )
)
text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
assert text == said, text
assert sum(1 for chunk in chunks if chunk.choices and chunk.choices[0].delta.content) > 1, "the text came in one piece"
assert chunks[-1].usage.completion_tokens > 0, chunks[-1]

schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
held = client.chat.completions.create(
    model=model,
    messages=question,
    response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": schema}},
)
assert json.loads(held.choices[0].message.content) == {"name": "scripted", "age": 1}, held

parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
offer = [
    {"type": "function", "function": {"name": "search-notes", "parameters": parameters}},
    {
        "type": "function",
        "function": {
            "name": "final_answer",
            "parameters": {"type": "object", "properties": {"answer": {"type": "string"}}},
        },
    },
]
as_agent = {"x-trellis-prompt": "agent-react"}


def call_of(messages):
    reply = client.chat.completions.create(model=model, messages=messages, tools=offer, extra_headers=as_agent)
    assert reply.choices[0].finish_reason == "tool_calls", reply
    return reply.choices[0].message.tool_calls[0]


first = call_of(question)
assert first.function.name == "search-notes", first
assert json.loads(first.function.arguments) == {"query": "Say hello."}, first
seen = question + [
    {"role": "assistant", "content": None, "tool_calls": [first.model_dump()]},
    {"role": "tool", "tool_call_id": first.id, "content": "a note"},
]
last = call_of(seen)
assert last.function.name == "final_answer", last
assert "Say hello." in json.loads(last.function.arguments)["answer"], last

with client.chat.completions.stream(model=model, messages=question, tools=offer, extra_headers=as_agent) as stream:
    streamed = stream.get_final_completion().choices[0].message.tool_calls[0]
assert json.loads(streamed.function.arguments) == {"query": "Say hello."}, streamed

try:
    client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Please refuse."}])
    raise SystemExit("the refusal did not arrive")
except openai.BadRequestError as error:
    assert "the script refuses this question" in str(error), error

print("openai: all well")
