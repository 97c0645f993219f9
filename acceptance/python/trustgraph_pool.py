"""Questions through the gateway of a TrustGraph deployment, all at the same time: what each was answered, as JSON."""

import asyncio
import json
import sys

from trustgraph.api import AgentAnswer, Api

url, count = sys.argv[1], int(sys.argv[2])


async def ask(flow, number):
    chunks = [chunk async for chunk in await flow.agent(f"Question {number}?", streaming=True, pattern="react")]
    answers = [chunk for chunk in chunks if isinstance(chunk, AgentAnswer)]
    return {"answer": "".join(chunk.content for chunk in answers), "ends": sum(chunk.end_of_dialog for chunk in answers)}


async def main():
    async with Api(url).async_socket() as socket:
        return await asyncio.gather(*(ask(socket.flow("default"), number) for number in range(count)))


print(json.dumps(asyncio.run(main())))
