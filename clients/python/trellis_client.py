"""A client for Trellis in one file: copy it beside your program. Python 3.10 or newer, nothing else to install.

    from trellis_client import Trellis

    trellis = Trellis("http://127.0.0.1:8888", token="…")
    run = trellis.ask("Who was Ada Lovelace?")
    print(run.answer, run.state, run.run_id)

A run goes on at the server whatever happens to its client: keep `run_id`, and `trellis.run(run_id)` tells what came of it.
Whatever the server refuses is a `TrellisError` with its words; a server that cannot be reached is an `OSError`.
"""

from __future__ import annotations

import base64
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Literal, TypedDict

__all__ = ["Event", "Limits", "LoadedDocument", "LoadedKnowledge", "OpenQuestion", "Run", "State", "Trellis", "TrellisError"]

State = Literal["queued", "running", "waiting", "answered", "answered-partial", "limit", "failed", "cancelled"]
ENDS: frozenset[str] = frozenset({"answered", "answered-partial", "limit", "failed", "cancelled"})

Limits = TypedDict(
    "Limits",
    {
        "max-iterations": int,
        "max-plan-steps": int,
        "max-replans": int,
        "steps-at-once": int,
        "max-rounds": int,
        "max-depth": int,
        "max-siblings": int,
        "max-model-calls": int,
        "max-tokens": int,
        "max-cost-micros": int,
        "max-agents": int,
        "conversation-bytes": int,
        "fan-in-timeout-ms": int,
        "model-timeout-ms": int,
        "tool-timeout-ms": int,
        "run-timeout-ms": int,
        "max-question-bytes": int,
        "max-reply-bytes": int,
        "shown-observation-bytes": int,
    },
    total=False,
)
"""How much a run may do; never more than the server's operator allows."""

RDF_FORMATS = {
    ".ttl": "turtle",
    ".nt": "n-triples",
    ".nq": "n-quads",
    ".trig": "trig",
    ".jsonld": "json-ld",
    ".rdf": "rdf-xml",
    ".owl": "rdf-xml",
}
LONGEST_WAIT = 600
"""Seconds that the server lets one request wait."""


class TrellisError(Exception):
    """The server does not do as asked. `kind` is a word for programs, such as `not-found`; the text is for people."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


@dataclass(frozen=True)
class OpenQuestion:
    """A question to a person that a run waits for, such as whether a tool may be called."""

    question: str
    options: list[str]
    session_id: str
    park: str
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    expires: str | None = None
    """When `otherwise` is taken if nobody answers."""
    otherwise: str | None = None


@dataclass(frozen=True)
class Run:
    """A run and what came of it, as far as something has."""

    run_id: str
    state: State
    question: str
    answer: str | None = None
    error: str | None = None
    reason: str | None = None
    """Why it ended, such as `final-answer`; None while it has not."""
    pattern: str = ""
    task_type: str = ""
    conversation_id: str | None = None
    waiting_for: list[OpenQuestion] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict, repr=False)
    """Everything that the server told."""

    @property
    def ended(self) -> bool:
        return self.state in ENDS

    @classmethod
    def read(cls, told: dict[str, Any]) -> Run:
        """From what the server tells of a run. Members that a newer server adds are in `raw`."""
        questions = [
            OpenQuestion(**{name: asked[name] for name in OpenQuestion.__dataclass_fields__ if name in asked})
            for asked in told.get("waiting_for", [])
        ]
        names = ("run_id", "state", "question", "answer", "error", "reason", "pattern", "task_type", "conversation_id")
        return cls(**{name: told[name] for name in names if name in told}, waiting_for=questions, raw=told)


@dataclass(frozen=True)
class Event:
    """Something that happened in a run. Text that is still being written has the type `chunk` and no number."""

    type: str
    seq: int | None
    data: dict[str, Any]


@dataclass(frozen=True)
class LoadedDocument:
    passages: int
    document: str
    """The document of the library that answers cite."""


@dataclass(frozen=True)
class LoadedKnowledge:
    read: int
    new: int
    """Statements that were not there before."""


class Trellis:
    """A server, seen from one workspace.

    Without arguments the address and the token are those of `TRUSTGRAPH_URL` and `TRUSTGRAPH_TOKEN`, as for the command
    line. Without a workspace it is that of the token. `timeout` is for how many seconds a server may be silent.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        workspace: str | None = None,
        timeout: float = 60,
    ) -> None:
        self.url = (url or os.environ.get("TRUSTGRAPH_URL") or "http://127.0.0.1:8888").rstrip("/")
        self.token = token if token is not None else os.environ.get("TRUSTGRAPH_TOKEN", "")
        self.workspace, self.timeout = workspace, timeout

    def ask(
        self,
        question: str,
        *,
        pattern: str | None = None,
        task_type: str | None = None,
        conversation_id: str | None = None,
        collection: str | None = None,
        limits: Limits | None = None,
        wait: float = LONGEST_WAIT,
        key: str | None = None,
    ) -> Run:
        """Asks a question and waits for what comes of it: the end of the run, or a question that somebody has to answer.

        After `wait` seconds the run is returned as it is by then; it goes on. A request that is sent again under the same
        `key` gets the same run, so a program that was interrupted can ask again without asking twice.

            run = trellis.ask("Compare the two offers", pattern="supervisor", limits={"max-rounds": 2})
            if run.state == "waiting":
                run = trellis.decide(run, "approve", reason="as agreed")
        """
        given = {
            "question": question,
            "pattern": pattern,
            "task_type": task_type,
            "conversation_id": conversation_id,
            "collection": collection,
            "limits": limits,
        }
        body = {name: value for name, value in given.items() if value is not None}
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        seconds = max(0, min(int(wait), LONGEST_WAIT))
        until = time.monotonic() + wait
        begun = self._call("POST", "/runs", {"wait": str(seconds)}, body, headers, silence=seconds + self.timeout)
        if "run" in begun:
            return Run.read(begun["run"])
        return self.wait(begun["run_id"], max(0.0, until - time.monotonic()))

    def begin(self, question: str, **how: Any) -> Run:
        """The same as `ask` without waiting: `for event in trellis.events(trellis.begin("…"))` follows it."""
        return self.ask(question, wait=0, **how)

    def run(self, run: str | Run) -> Run:
        """What is known of a run now."""
        return Run.read(self._call("GET", f"/runs/{_id(run)}"))

    def wait(self, run: str | Run, seconds: float | None = None) -> Run:
        """Waits for the end of a run, or for a question that somebody has to answer; for so long at most, if it is said.

            run = trellis.wait(trellis.begin("…"))
        """
        until = None if seconds is None else time.monotonic() + seconds
        pause = 0.1
        while True:
            found = self.run(run)
            left = None if until is None else until - time.monotonic()
            if found.ended or found.state == "waiting" or (left is not None and left <= 0):
                return found
            time.sleep(pause if left is None else min(pause, left))
            pause = min(pause * 2, 2.0)

    def runs(self, limit: int = 20, state: State | None = None, search: str | None = None) -> list[Run]:
        """Runs, newest first. Their answers are not told here."""
        wanted = {"limit": str(limit), "state": state, "search": search}
        listed = self._call("GET", "/runs", {name: value for name, value in wanted.items() if value})
        return [Run.read(told) for told in listed["runs"]]

    def events(self, run: str | Run, after: int = 0) -> Iterator[Event]:
        """What happens in a run from its beginning to its end, as it happens. A connection that breaks is taken up again:
        events with a number come once and in order. Text of type `chunk` is a preview, which may come again.

            for event in trellis.events(run):
                if event.type == "chunk":
                    print(event.data["content"], end="", flush=True)
        """
        path, failures = f"/runs/{_id(run)}/events", 0
        while True:
            try:
                with self._open("GET", path, headers={"Last-Event-ID": str(after)}) as response:
                    if response.status == 204:
                        return
                    for event in _read_events(response):
                        failures = 0
                        after = event.seq or after
                        yield event
                        if event.type in ("run.completed", "run.failed"):
                            return
            except TrellisError as error:
                if error.status not in (502, 503, 504):
                    raise
            except (OSError, HTTPException):
                if failures >= 10:
                    raise
            # The server stops, or the connection broke.
            failures += 1
            if failures > 10:
                raise ConnectionError(f"{self.url} ends the stream of run {_id(run)} again and again")
            time.sleep(min(0.2 * 2**failures, 5))

    def trace(self, run: str | Run) -> dict[str, Any]:
        """Every step of a run with its decisions, and the texts that they refer to."""
        return self._call("GET", f"/runs/{_id(run)}/trace")

    def decide(
        self,
        run: str | Run,
        choice: str,
        *,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        result: str | None = None,
        question: OpenQuestion | None = None,
        wait: float = LONGEST_WAIT,
    ) -> Run:
        """Answers a question that a run waits for, and waits for what comes of it. Which question has to be said only if
        several are open.

            run = trellis.decide(run, "deny", reason="too expensive")
        """
        body: dict[str, Any] = {"choice": choice, "reason": reason, "arguments": arguments, "result": result}
        if question is not None:
            body |= {"session_id": question.session_id, "park": question.park}
        body = {name: value for name, value in body.items() if value is not None}
        self._call("POST", f"/runs/{_id(run)}/decide", body=body)
        return self.wait(run, wait)

    def cancel(self, run: str | Run) -> Run:
        """Ends a run. What it has recorded stays."""
        self._call("POST", f"/runs/{_id(run)}/cancel")
        return self.run(run)

    def tell(self, run: str | Run, message: str) -> int:
        """Tells a run something while it is under way. Gives how many agents will hear it.

            trellis.tell(run, "Only look at the last two years.")
        """
        told = self._call("POST", f"/runs/{_id(run)}/tell", body={"message": message})
        return int(told["agents"])

    def load(self, file: str | Path, collection: str = "default") -> LoadedDocument | LoadedKnowledge:
        """Loads a file into a collection: RDF as knowledge, by the end of its name, everything else as a document that is
        searched.

            trellis.load("handbook.pdf", collection="house-rules")
        """
        path = Path(file)
        format = RDF_FORMATS.get(path.suffix.lower())
        if format is None:
            return self.load_document(path.read_bytes(), id=path.resolve().as_uri(), collection=collection)
        place = f"/collections/{urllib.parse.quote(collection, safe='')}/knowledge"
        query = {"format": format, "source": path.resolve().as_uri()}
        with path.open("rb") as content:
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(path.stat().st_size)}
            with self._open("POST", place, query, content, headers, silence=max(self.timeout, 600)) as response:
                told = json.load(response)
        return LoadedKnowledge(read=told["read"], new=told["new"])

    def load_document(self, content: bytes, id: str, collection: str = "default") -> LoadedDocument:
        """Loads a document that is searched: text, Markdown, HTML or PDF. One with the same id takes its place."""
        body = {"id": id, "data": base64.b64encode(content).decode(), "collection": collection}
        if self.workspace:
            body["workspace"] = self.workspace
        told = self._call("POST", "/flow/default/service/document-load", body=body, silence=max(self.timeout, 600))
        if "error" in told:
            raise TrellisError(200, told["error"].get("type", ""), told["error"].get("message", ""))
        return LoadedDocument(passages=told["passages"], document=told["document"])

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
    ) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        with self._open(method, path, query, data, headers, silence) as response:
            told: dict[str, Any] = json.load(response)
            return told

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
    ) -> HTTPResponse:
        # Services of TrustGraph's are told the workspace in their body.
        place = {"workspace": self.workspace} if self.workspace and not path.startswith("/flow/") else {}
        pairs = urllib.parse.urlencode({**(query or {}), **place})
        request = urllib.request.Request(f"{self.url}/api/v1{path}" + (f"?{pairs}" if pairs else ""), body, method=method)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            response: HTTPResponse = urllib.request.urlopen(request, timeout=silence or self.timeout)
            return response
        except urllib.error.HTTPError as refused:
            with refused:
                raise _refusal(refused.code, refused.read(1 << 20)) from None


def _id(run: str | Run) -> str:
    return urllib.parse.quote(run.run_id if isinstance(run, Run) else run, safe="")


def _refusal(status: int, body: bytes) -> TrellisError:
    try:
        error = json.loads(body)["error"]
        if isinstance(error, str):
            return TrellisError(status, "", error)
        return TrellisError(status, error.get("type", ""), error.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return TrellisError(status, "", f"the server answers {status}; is it a Trellis server?")


def _read_events(response: HTTPResponse) -> Iterator[Event]:
    """Server-sent events. One that a broken connection has cut off is none."""
    number, kind, data = "", "", list[str]()
    for raw in response:
        line = raw.decode().rstrip("\r\n")
        if not line:
            if data:
                yield Event(type=kind, seq=int(number) if number else None, data=json.loads("\n".join(data)))
            number, kind, data = "", "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            number = value
        elif name == "event":
            kind = value
        elif name == "data":
            data.append(value)


def _main(arguments: Sequence[str]) -> None:
    """`python trellis_client.py QUESTION` asks the server of `TRUSTGRAPH_URL`."""
    if len(arguments) != 1:
        raise SystemExit(_main.__doc__)
    run = Trellis().ask(arguments[0])
    print(run.answer or run.error or run.state)


if __name__ == "__main__":
    import sys

    _main(sys.argv[1:])
