"""Every recorded request body against the request types of the package that its vendor publishes.

    python request_bodies.py FOLDER

FOLDER holds one folder per kind of request, named as in KINDS, with the recorded bodies as JSON files in it. A member
that the vendor's type does not know is a fault, as is one that is missing or has a wrong type. Each fault is printed
with its file and its place in the body; the exit code is 1 if there are any, and 2 if nothing could be checked.
"""

import json
import pathlib
import sys
import typing

import pydantic
import pydantic_core

# The place in the body, and what is wrong there.
Fault = tuple[str, str]
Check = typing.Callable[[dict], list[Fault]]


def closed(schema, opened: tuple = ()):
    """The same types, with members that they do not name forbidden, and lists read at once instead of when used."""
    if isinstance(schema, list):
        return [closed(part, opened) for part in schema]
    if not isinstance(schema, dict) or schema.get("cls") in opened:
        return schema
    schema = {name: closed(part, opened) for name, part in schema.items() if name != "metadata"}
    if schema.get("type") in ("typed-dict", "model-fields"):
        schema["extra_behavior"] = "forbid"
        schema.pop("extras_schema", None)
    if schema.get("type") == "generator":
        schema["type"] = "list"
    return schema


def typed(kind, opened: tuple = ()) -> Check:
    """A check by a type that pydantic understands. Members of the opened types are not limited to those they name."""
    schema = closed(pydantic.TypeAdapter(kind).core_schema, opened)
    # Otherwise the validators of nested types would be those that the package has built for itself.
    validator = pydantic_core.SchemaValidator(schema, _use_prebuilt=False)

    def check(body: dict) -> list[Fault]:
        try:
            # Strict: "5" is no number. As JSON, because that is what was sent.
            validator.validate_json(json.dumps(body), strict=True)
            return []
        except pydantic_core.ValidationError as error:
            return meant(error.errors(include_url=False, include_input=False), body)

    return check


def place(location: tuple, body) -> tuple[str, int]:
    """The way to a member of the body, and how much of a location is one: the rest are names of types."""
    shown, reached, here = "", 0, body
    for step in location:
        if isinstance(here, dict) and step in here:
            shown, reached, here = f"{shown}.{step}" if shown else step, reached + 1, here[step]
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            shown, reached, here = f"{shown}[{step}]", reached + 1, here[step]
    return shown, reached


def meant(errors: list[dict], body) -> list[Fault]:
    """What is wrong. Of the types that a member may have, those of another role or kind are not meant."""
    tags = {"role", "type"}
    other = {tuple(e["loc"][:-1]) for e in errors if e["type"] == "literal_error" and e["loc"][-1] in tags}
    other |= {tuple(e["loc"][:-1]) for e in errors if e["type"] == "missing" and e["loc"][-1] in tags}
    left = [e for e in errors if not any(tuple(e["loc"])[: len(way)] == way for way in other)]
    deepest = max((place(e["loc"], body)[1] for e in left), default=0)
    faults = []
    for e in left or errors:
        shown, reached = place(e["loc"], body)
        # A list is no text, and a text no list: only the way that leads furthest is told.
        if reached < deepest and e["type"].endswith("_type") and len(left) > 1:
            continue
        name = e["loc"][-1] if e["type"] == "missing" else None
        faults.append((f"{shown}.{name}" if name and shown else name or shown, e["msg"]))
    return sorted(set(faults))


def by_stream(whole, streamed) -> Check:
    """Two types, told apart by whether the reply is to be streamed."""
    whole, streamed = typed(whole), typed(streamed)
    return lambda body: (streamed if body.get("stream") else whole)(body)


def openai_chat() -> Check:
    from openai.types.chat import completion_create_params as params

    return by_stream(params.CompletionCreateParamsNonStreaming, params.CompletionCreateParamsStreaming)


def besides(check: Check, *members: str) -> Check:
    """The same check for a body that may hold these members, too."""
    return lambda body: check({name: value for name, value in body.items() if name not in members})


def openrouter_chat() -> Check:
    """OpenAI's, with a member of the router's own."""
    return besides(openai_chat(), "provider")


def openai_responses() -> Check:
    from openai.types.responses import response_create_params as params

    return by_stream(params.ResponseCreateParamsNonStreaming, params.ResponseCreateParamsStreaming)


def anthropic_messages() -> Check:
    from anthropic.types import message_create_params as params

    newest = by_stream(params.MessageCreateParamsNonStreaming, params.MessageCreateParamsStreaming)
    # The package has dropped what only older models take.
    return besides(newest, "temperature", "top_p")


def ollama_chat() -> Check:
    import ollama
    from ollama._types import ChatRequest

    class Request(ChatRequest):
        # For both the package takes any mapping, for the convenience of callers.
        messages: list[ollama.Message]
        options: typing.Optional[ollama.Options] = None

    # A schema may say more than the package reads of it.
    return typed(Request, opened=(ollama.Tool.Function.Parameters,))


def mistral_chat() -> Check:
    from mistralai.client.models import ChatCompletionRequest, ChatCompletionStreamRequest

    return by_stream(ChatCompletionRequest, ChatCompletionStreamRequest)


def gemini_generate() -> Check:
    from google.genai import types
    from google.genai._common import BaseModel

    class Request(BaseModel, defer_build=False):
        """The body of `generateContent`, of the package's own types; the model stands in the address."""

        contents: list[types.Content]
        system_instruction: typing.Optional[types.Content] = None
        tools: typing.Optional[list[types.Tool]] = None
        tool_config: typing.Optional[types.ToolConfig] = None
        generation_config: typing.Optional[types.GenerationConfig] = None
        safety_settings: typing.Optional[list[types.SafetySetting]] = None
        cached_content: typing.Optional[str] = None
        labels: typing.Optional[dict[str, str]] = None

    return typed(Request)


def bedrock_converse() -> Check:
    import botocore.loaders
    import botocore.model
    import botocore.validate

    service = botocore.loaders.Loader().load_service_model("bedrock-runtime", "service-2")
    shape = botocore.model.ServiceModel(service).operation_model("ConverseStream").input_shape

    def check(body: dict) -> list[Fault]:
        # The model stands in the address.
        report = botocore.validate.ParamValidator().validate({"modelId": "any", **body}, shape)
        return [("", line) for line in report.generate_report().splitlines()]

    return check


# What a folder is called, and what its bodies are checked by.
KINDS = {
    "openai-chat": openai_chat,
    "openrouter-chat": openrouter_chat,
    "openai-responses": openai_responses,
    "anthropic-messages": anthropic_messages,
    "ollama-chat": ollama_chat,
    "mistral-chat": mistral_chat,
    "gemini-generate": gemini_generate,
    "bedrock-converse": bedrock_converse,
}


def main(root: pathlib.Path) -> int:
    folders = sorted(folder for folder in root.iterdir() if folder.is_dir()) if root.is_dir() else []
    checked, faults = 0, 0
    for folder in folders:
        if folder.name not in KINDS:
            print(f"{folder}: no such kind of request; there are {', '.join(KINDS)}")
            return 2
        check, files = KINDS[folder.name](), sorted(folder.glob("*.json"))
        for file in files:
            checked += 1
            for member, what in check(json.loads(file.read_text(encoding="utf-8"))):
                faults += 1
                print(f"{file.relative_to(root)}: {member or 'the body'}: {what}")
        print(f"{folder.name}: {len(files)} bodies")
    if not checked:
        print(f"{root} holds no recorded bodies: the tests that record them have not run")
        return 2
    print(f"request bodies: {faults} faults in {checked} bodies")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
