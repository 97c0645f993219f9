// The package `openai` for Node, unchanged. npm install openai; node ask.mjs
import { createRequire } from "node:module";

const OpenAI = createRequire(import.meta.url)("openai");
const url = (process.env.TRUSTGRAPH_URL ?? "http://localhost:8888").replace(/\/$/, "");
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: process.env.TRUSTGRAPH_TOKEN ?? "not needed" });

const messages = [{ role: "user", content: "What is Company X?" }];
const { data, response } = await client.chat.completions
  .create({ model: "trellis/auto", messages, stream: true })
  .withResponse();
for await (const chunk of data) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
console.log(`\nlook at it: trellis run show ${response.headers.get("x-trellis-run")}`);
