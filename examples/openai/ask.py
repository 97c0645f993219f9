"""The package `openai`, unchanged: the answers come from agents, and each of them is a run that can be looked at.

    pip install openai
    python3 ask.py
"""

import os

import openai

url = os.environ.get("TRUSTGRAPH_URL", "http://localhost:8888").rstrip("/")
client = openai.OpenAI(base_url=f"{url}/v1", api_key=os.environ.get("TRUSTGRAPH_TOKEN", "not needed"))

# A chat, as it is written.
chat = [{"role": "user", "content": "What is Company X?"}]
stream = client.chat.completions.create(model="trellis/auto", messages=chat, stream=True)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print("\nlook at it: trellis run show", stream.response.headers["x-trellis-run"])

# A question and one that goes on from it. A model `trellis/NAME` chooses the pattern.
first = client.responses.create(model="trellis/react", input="What is Company X?")
second = client.responses.create(model="trellis/react", input="And who owns it?", previous_response_id=first.id)
print(second.output_text)
print("look at it: trellis run show", second.id.removeprefix("resp_"))
