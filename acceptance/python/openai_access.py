"""The stock openai package before a server that asks for a token."""

import sys

import openai

address, token = sys.argv[1:]
known = openai.OpenAI(base_url=f"{address}v1", api_key=token)
assert known.models.list().data, "there are models"
unknown = openai.OpenAI(base_url=f"{address}v1", api_key="wrong")
for ask in (
    lambda: unknown.models.list(),
    lambda: unknown.chat.completions.create(model="trellis/auto", messages=[{"role": "user", "content": "Who?"}]),
    lambda: unknown.responses.create(model="trellis/auto", input="Who?"),
):
    try:
        ask()
        raise SystemExit("a wrong token was let in")
    except openai.AuthenticationError as error:
        assert error.code == "invalid_api_key", error

print("access: all well")
