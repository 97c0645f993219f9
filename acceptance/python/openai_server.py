"""The stock openai package against Trellis itself: models, chats, responses, streams, errors."""

import sys

import openai

address = sys.argv[1]
client = openai.OpenAI(base_url=f"{address}v1", api_key="unused")
question = "Who was Ada?"
said = f"The script answers: {question}"
messages = [{"role": "user", "content": question}]

# Models.
names = [model.id for model in client.models.list()]
assert names[0] == "trellis/auto" and "trellis/supervisor" in names, names
assert client.models.retrieve("trellis/auto").owned_by == "trellis"

# A chat, whole and as a stream. What programs send without being asked does no harm.
whole = client.chat.completions.create(
    model="trellis/auto", messages=messages, temperature=0, max_completion_tokens=100, seed=1, user="ada"
)
assert said in whole.choices[0].message.content, whole
assert whole.choices[0].finish_reason == "stop" and whole.usage.total_tokens > 0, whole
run = whole.id.removeprefix("chatcmpl-")
assert whole._request_id == run and whole.trellis["run_id"] == run, whole

stream = client.chat.completions.create(
    model="trellis/react", messages=messages, stream=True, stream_options={"include_usage": True}
)
chunks = list(stream)
assert stream.response.headers["x-trellis-run"] == chunks[0].id.removeprefix("chatcmpl-")
assert chunks[0].choices[0].delta.role == "assistant", chunks[0]
text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
again = client.responses.retrieve("resp_" + chunks[0].id.removeprefix("chatcmpl-"))
assert said in text and again.output_text == text, text
assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop", chunks
assert chunks[-1].usage.total_tokens > 0, chunks[-1]

with client.chat.completions.stream(model="trellis/react", messages=messages) as helped:
    assert helped.get_final_completion().choices[0].message.content == text

# What was said before.
talk = messages + [
    {"role": "assistant", "content": "A countess."},
    {"role": "user", "content": [{"type": "text", "text": "And when?"}]},
]
later = client.chat.completions.create(model="trellis/react", messages=talk)
assert "The script answers: And when?" in later.choices[0].message.content, later

# Responses, one going on from another.
first = client.responses.create(model="trellis/react", input=question, instructions="Be brief.", metadata={"a": "b"})
assert first.status == "completed" and said in first.output_text, first
assert first.metadata == {"a": "b"} and first.instructions == "Be brief.", first
second = client.responses.create(
    model="trellis/react", input=[{"role": "user", "content": "And when?"}], previous_response_id=first.id
)
assert second.previous_response_id == first.id and second.conversation.id == first.conversation.id, second
read = client.responses.retrieve(second.id)
assert read.output_text == second.output_text and read.usage.total_tokens == second.usage.total_tokens, read

events = list(client.responses.create(model="trellis/react", input=question, stream=True))
assert [event.sequence_number for event in events] == list(range(len(events))), events
assert events[0].type == "response.created" and events[-1].type == "response.completed", events
streamed = "".join(event.delta for event in events if event.type == "response.output_text.delta")
assert streamed == events[-1].response.output_text and said in streamed, streamed
with client.responses.stream(model="trellis/react", input=question) as helped:
    assert helped.get_final_response().output_text == streamed
resumed = list(client.responses.retrieve(events[0].response.id, stream=True, starting_after=3))
assert [event.sequence_number for event in resumed] == list(range(4, len(events))), resumed

waits = client.responses.create(model="trellis/react", input="Please keep me waiting.", background=True)
assert waits.status in ("queued", "in_progress"), waits
assert client.responses.cancel(waits.id).status == "cancelled"

# Errors.
started = client.responses.create(model="trellis/react", input="Please keep me waiting.", background=True)


def refused(kind, code, ask):
    try:
        ask()
    except kind as error:
        assert error.code == code, error
        return error
    raise SystemExit(f"{kind} was not raised")


refused(
    openai.NotFoundError, "model_not_found", lambda: client.chat.completions.create(model="gpt-4o", messages=messages)
)
refused(openai.NotFoundError, "not_found", lambda: client.responses.retrieve("resp_nobody"))
refused(openai.PermissionDeniedError, "records_are_kept", lambda: client.responses.delete(first.id))
wrong = refused(
    openai.BadRequestError,
    "unsupported_parameter",
    lambda: client.chat.completions.create(model="trellis/auto", messages=messages, n=2),
)
assert wrong.param == "n", wrong
refused(
    openai.BadRequestError,
    "invalid_value",
    lambda: client.responses.create(model="trellis/auto", input="x", previous_response_id=started.id),
)
client.responses.cancel(started.id)

# A run without an answer is asked for once: a repetition would be another run.
failed = refused(
    openai.InternalServerError,
    "run_failed",
    lambda: client.chat.completions.create(
        model="trellis/react", messages=[{"role": "user", "content": "Please refuse."}]
    ),
)
assert failed.response.request.headers["x-stainless-retry-count"] == "0", failed
try:
    list(
        client.chat.completions.create(
            model="trellis/react", messages=[{"role": "user", "content": "Please refuse."}], stream=True
        )
    )
    raise SystemExit("the stream told no error")
except openai.APIError as error:
    assert error.code == "run_failed", error

# Nor does a question that takes longer than its caller waits become another.
late = refused(
    openai.InternalServerError,
    "run_goes_on",
    lambda: client.with_options(timeout=2).chat.completions.create(
        model="trellis/react", messages=[{"role": "user", "content": "Please keep me waiting."}]
    ),
)
assert late.response.request.headers["x-stainless-retry-count"] == "0", late
client.responses.cancel("resp_" + late.request_id)

print("openai: all well")
