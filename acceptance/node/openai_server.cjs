// The stock openai package of Node against Trellis: models, chats, responses, streams, errors.

const assert = require("node:assert/strict");
const OpenAI = require("openai");

const question = "Who was Ada?";
const said = `The script answers: ${question}`;
const messages = [{ role: "user", content: question }];
const client = new OpenAI({ baseURL: `${process.argv[2]}v1`, apiKey: "unused" });

async function main() {
  const names = (await client.models.list()).data.map((model) => model.id);
  assert.equal(names[0], "trellis/auto");
  assert.equal((await client.models.retrieve("trellis/react")).id, "trellis/react");

  const { data: whole, response } = await client.chat.completions
    .create({ model: "trellis/auto", messages, temperature: 0 })
    .withResponse();
  assert.ok(whole.choices[0].message.content.includes(said));
  assert.equal(`chatcmpl-${response.headers.get("x-trellis-run")}`, whole.id);

  let text = "";
  let finish = null;
  const options = { include_usage: true };
  const stream = await client.chat.completions.create({ model: "trellis/react", messages, stream: true, stream_options: options });
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    finish = chunk.choices[0]?.finish_reason ?? finish;
  }
  assert.ok(text.includes(said));
  assert.equal(finish, "stop");
  const helped = client.chat.completions.stream({ model: "trellis/react", messages });
  assert.equal(await helped.finalContent(), text);

  const first = await client.responses.create({ model: "trellis/react", input: question });
  assert.equal(first.output_text, text);
  const second = await client.responses.create({ model: "trellis/react", input: "And when?", previous_response_id: first.id });
  assert.equal(second.previous_response_id, first.id);
  let streamed = "";
  const types = [];
  for await (const event of await client.responses.create({ model: "trellis/react", input: question, stream: true })) {
    types.push(event.type);
    if (event.type === "response.output_text.delta") streamed += event.delta;
  }
  assert.equal(streamed, text);
  assert.equal(types.at(-1), "response.completed");
  assert.equal((await client.responses.stream({ model: "trellis/react", input: question }).finalResponse()).output_text, text);

  const ask = (more) => client.chat.completions.create({ model: "trellis/react", messages, ...more });
  await assert.rejects(ask({ model: "gpt-4o" }), (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found");
  await assert.rejects(ask({ n: 2 }), (error) => error instanceof OpenAI.BadRequestError && error.param === "n");
  const refuse = [{ role: "user", content: "Please refuse." }];
  await assert.rejects(ask({ messages: refuse }), (error) => error instanceof OpenAI.InternalServerError && error.code === "run_failed");
  await assert.rejects(async () => {
    for await (const chunk of await ask({ messages: refuse, stream: true })) assert.ok(chunk);
  }, (error) => error instanceof OpenAI.APIError && error.code === "run_failed");
  console.log("openai: all well");
}

main();
