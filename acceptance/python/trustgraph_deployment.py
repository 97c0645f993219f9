"""What stands around an orchestrator in a TrustGraph deployment: configuration, IAM, prompts, tools, librarian, triple store.

Messages are those of `trustgraph-base`, over its own connection to RabbitMQ (RABBITMQ_HOST and so on). What is worth knowing
is told in lines of JSON: that everything is there, a prompt that is not answered, who answers a question and who ends it.
"""

import asyncio
import dataclasses
import json

from trustgraph.base.pubsub import get_async_pubsub
from trustgraph.schema import (
    AgentResponse,
    ConfigPush,
    ConfigRequest,
    ConfigResponse,
    ConfigValue,
    Error,
    GraphRagQuery,
    GraphRagResponse,
    IamRequest,
    IamResponse,
    LibrarianRequest,
    LibrarianResponse,
    PromptRequest,
    PromptResponse,
    Term,
    ToolRequest,
    ToolResponse,
    Triple,
    Triples,
    TriplesQueryRequest,
    TriplesQueryResponse,
)

FLOW = "default:default"
RETRIEVAL = "urn:graph:retrieval"
TG, PROV = "https://trustgraph.ai/ns/", "http://www.w3.org/ns/prov#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RAG_STEPS = [["Question", "GraphRagQuestion"], ["Grounding"], ["Exploration"], ["Focus"], ["Synthesis"]]
SERVICES = [
    "text-completion",
    "prompt",
    "mcp-tool",
    "graph-rag",
    "structured-query",
    "embeddings",
    "row-embeddings-query",
    "triples",
]


@dataclasses.dataclass
class Response(AgentResponse):
    """Ours names its session, which readers of the published class overlook."""

    session_id: str = ""


def tell(**what):
    print(json.dumps(what), flush=True)


def channel(kind, name, place=FLOW):
    return f"{kind}:tg:{name}:{place}"


def both(name):
    return {"request": channel("request", name), "response": channel("response", name)}


def flow_of_orchestrator():
    topics = {
        "request": channel("request", "agent"),
        "next": channel("request", "agent"),
        "response": channel("response", "agent"),
        "explainability": channel("flow", "triples-store"),
        "librarian-request": channel("request", "librarian", "default"),
        "librarian-response": channel("response", "librarian", "default"),
    }
    for name in SERVICES:
        topics |= {f"{name}-{way}": place for way, place in both(name).items()}
    return {"topics": topics, "parameters": {}}


def flow_of_gateway():
    interfaces = {name: both(name) for name in ["agent", "triples"]}
    return {"description": "", "blueprint-name": "b", "interfaces": interfaces, "parameters": {}}


def tool(name, kind, **more):
    return {"name": name, "description": f"The {name}", "type": kind, **more}


CITY = [{"name": "city", "type": "string", "description": "Where"}]
TEXT = {"prompt": "p", "response-type": "text"}
LIST = {"prompt": "p", "response-type": "json", "schema": {"type": "array"}}
OBJECT = {"prompt": "p", "response-type": "json", "schema": {"type": "object"}}
PROMPTS = {
    "agent-react": TEXT,
    "plan-create": LIST,
    "plan-step-execute": OBJECT,
    "plan-synthesise": TEXT,
    "supervisor-decompose": LIST,
    "supervisor-synthesise": TEXT,
}


class Configuration:
    def __init__(self, notices):
        self.notices, self.version, self.values = notices, 1, {}
        weather = tool("weather", "mcp-tool", **{"mcp-tool": "get_weather", "arguments": CITY, "effect": "read"})
        items = {
            ("__workspaces__", "workspace", "default"): {"enabled": True},
            ("default", "flow", "default"): flow_of_gateway(),
            ("default", "processor:agent-manager", "default"): flow_of_orchestrator(),
            ("default", "tool", "weather"): weather,
            ("default", "tool", "almanac"): tool("almanac", "knowledge-query", collection="years"),
        }
        items |= {("default", "prompt", f"template.{name}"): prompt for name, prompt in PROMPTS.items()}
        self.values = {place: json.dumps(value) for place, value in items.items()}

    def of(self, kind, workspace=None):
        return [
            ConfigValue(kind, key, value, there)
            for (there, of, key), value in self.values.items()
            if of == kind and workspace in (None, there)
        ]

    async def answer(self, request, workspace):
        reply = ConfigResponse(version=self.version)
        match request.operation:
            case "getkeys-all-ws":
                reply.values = [dataclasses.replace(value, value="") for value in self.of(request.type)]
            case "getvalues-all-ws":
                reply.values = self.of(request.type)
            case "getvalues":
                reply.values = [dataclasses.replace(value, workspace="") for value in self.of(request.type, workspace)]
            case "get":
                keys = [(key.type, key.key) for key in request.keys]
                reply.values = [ConfigValue(*key, self.values.get((workspace, *key))) for key in keys]
            case "config":
                for (there, kind, key), value in self.values.items():
                    if there == workspace:
                        reply.config.setdefault(kind, {})[key] = value
            case "put":
                self.version += 1
                self.values |= {(workspace, item.type, item.key): item.value for item in request.values}
                changes = {item.type: [workspace] for item in request.values}
                await self.notices.send(ConfigPush(self.version, changes))
            case other:
                reply.error = Error("request-error", f"nobody here knows {other}")
        return reply


def iam(request):
    match request.operation:
        case "authenticate-anonymous":
            return IamResponse(
                resolved_user_id="anonymous", resolved_default_workspace="default", resolved_roles=["admin"]
            )
        case "authorise":
            return IamResponse(decision_allow=True, decision_ttl_seconds=3600)
        # Nobody here has a token that would be checked with it; without one, the gateway does not start for a minute.
        case "get-signing-key-public":
            return IamResponse(signing_key_public="none")
        case other:
            return IamResponse(error=Error("invalid-argument", other))


def react(terms):
    question, tools = terms["question"], [tool["name"] for tool in terms["tools"]]
    if terms["history"]:
        return f"Thought: I know enough\nFinal Answer: {question} {terms['history'][-1]['observation']}"
    name = next((name for name in tools if name in question), "weather")
    arguments = {"question": question} if name == "almanac" else {"city": "Paris"}
    return f"Thought: I look it up\nAction: {name}\nArgs: {json.dumps(arguments)}"


def joined(results):
    return "; ".join(result["result"] for result in results)


unanswered = set()


def prompt(request):
    terms = {name: json.loads(value) for name, value in request.terms.items()}
    question = terms.get("question", "")
    if "No model" in question:
        return [PromptResponse(error=Error("llm-error", "no model"), text=None, object=None, end_of_stream=True)]
    # Only whoever asks again is answered.
    if "Slowly" in question and question not in unanswered:
        unanswered.add(question)
        tell(unanswered=question)
        return []
    use = {"in_token": 10, "out_token": 5, "model": "m"}
    steps = [{"goal": "Look", "tool_hint": "weather", "depends_on": []}]
    match request.id:
        case "plan-create":
            value = [*steps, {"goal": "Look again", "tool_hint": "weather", "depends_on": [0]}]
        case "plan-step-execute":
            value = {"tool": "weather", "arguments": {"city": "Oslo"}}
        case "supervisor-decompose":
            value = ["Rain in Paris?", "Rain in Oslo?"]
        case other:
            texts = {
                "agent-react": react,
                "plan-synthesise": lambda terms: "The plan: " + joined(terms["steps"]),
                "supervisor-synthesise": lambda terms: "All found: " + joined(terms["results"]),
            }
            text = texts[other](terms)
            if not request.streaming:
                return [PromptResponse(text=text, object=None, end_of_stream=True, **use)]
            pieces = [PromptResponse(text=text[i : i + 9], object=None) for i in range(0, len(text), 9)]
            return [*pieces, PromptResponse(text="", object=None, end_of_stream=True, **use)]
    return [PromptResponse(text=None, object=json.dumps(value), end_of_stream=True, **use)]


def mcp_tool(request):
    return ToolResponse(text=f"{request.name}: rain.", object=None)


class Librarian:
    def __init__(self):
        self.texts = {}

    def answer(self, request):
        if request.operation == "add-document":
            self.texts[request.document_metadata.id] = request.content
            return LibrarianResponse()
        text = self.texts.get(request.document_id)
        if text is None:
            return LibrarianResponse(error=Error("request-error", f"Document not found: {request.document_id}"))
        return LibrarianResponse(content=text)


class Store:
    def __init__(self):
        self.triples = []

    def keep(self, message):
        self.triples += message.triples
        return []

    def rag(self, request):
        """An answer with steps of its own, of which the first follows from the step that asked; the service stores them."""
        told, origin = [], request.parent_uri
        for types in RAG_STEPS:
            step = f"urn:trustgraph:rag:{types[0].lower()}"
            stated = [(f"{RDF}type", Term("i", iri=f"{TG}{name}")) for name in types]
            stated.append((f"{PROV}wasDerivedFrom", Term("i", iri=origin)))
            stated.append((f"{TG}query", Term("l", value=request.query)))
            triples = [Triple(Term("i", iri=step), Term("i", iri=name), value, RETRIEVAL) for name, value in stated]
            self.triples += triples
            explained = {"explain_id": step, "explain_graph": RETRIEVAL, "explain_triples": triples}
            told.append(GraphRagResponse(message_type="explain", **explained))
            origin = step
        answer = GraphRagResponse(message_type="chunk", response=f"In {request.collection}: 1815.", end_of_stream=True)
        return [*told, answer, GraphRagResponse(message_type="chunk", end_of_session=True)]

    def answer(self, request):
        def fits(triple):
            pairs = [(request.s, triple.s), (request.p, triple.p), (request.o, triple.o)]
            return all(wanted is None or wanted == there for wanted, there in pairs)

        return TriplesQueryResponse(triples=[triple for triple in self.triples if fits(triple)][: request.limit])


async def serve(backend, request, response, classes, answer):
    consumer = await backend.create_consumer(topic=request, subscription="deployment", schema=classes[0])
    producer = response and await backend.create_producer(topic=response, schema=classes[1])

    async def take():
        while True:
            message = await consumer.receive()
            answers = answer(message.value())
            answers = await answers if asyncio.iscoroutine(answers) else answers
            for each in answers if isinstance(answers, list) else [answers]:
                await producer.send(each, properties={"id": message.properties()["id"]})
            await consumer.acknowledge(message)

    return asyncio.create_task(take())


async def witness(backend):
    """Tells who takes part in each dialog and who ends it, as all listeners hear it."""
    consumer = await backend.create_consumer(topic=channel("response", "agent"), subscription="", schema=Response)
    known = set()

    async def hear():
        while True:
            message = await consumer.receive()
            response = message.value()
            part = (message.properties()["id"], bool(response.session_id))
            if part not in known:
                known.add(part)
                tell(answered=part[0], ours=part[1])
            if response.end_of_dialog:
                tell(ended=part[0], ours=part[1])
            await consumer.acknowledge(message)

    return asyncio.create_task(hear())


async def main():
    backend = get_async_pubsub(pubsub_backend="rabbitmq")
    notices = await backend.create_producer(topic="notify:tg:config", schema=ConfigPush)
    configuration, librarian, store = Configuration(notices), Librarian(), Store()

    def at(name, classes, answer, place=FLOW):
        request, response = (channel(kind, name, place) for kind in ["request", "response"])
        return serve(backend, request, response, classes, answer)

    config = (ConfigRequest, ConfigResponse)
    # Each answers for itself: the gateway has a queue for every workspace, all others share one.
    tasks = [
        await serve(
            backend, "request:tg:config", "response:tg:config", config, lambda r: configuration.answer(r, r.workspace)
        ),
        await at("config", config, lambda request: configuration.answer(request, "default"), "default"),
        await serve(backend, "request:tg:iam", "response:tg:iam", (IamRequest, IamResponse), iam),
        await at("prompt", (PromptRequest, PromptResponse), prompt),
        await at("mcp-tool", (ToolRequest, ToolResponse), mcp_tool),
        await at("graph-rag", (GraphRagQuery, GraphRagResponse), store.rag),
        await at("librarian", (LibrarianRequest, LibrarianResponse), librarian.answer, "default"),
        await at("triples", (TriplesQueryRequest, TriplesQueryResponse), store.answer),
        await serve(backend, channel("flow", "triples-store"), None, (Triples, None), store.keep),
        await witness(backend),
    ]
    tell(ready=True)
    await asyncio.gather(*tasks)


asyncio.run(main())
