"""Our own client in one file against the server: everything that it promises."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "clients/python"))

from trellis_client import LoadedDocument, LoadedKnowledge, Trellis, TrellisError  # noqa: E402

trellis = Trellis(sys.argv[1])

# A question, whole and as it happens.
run = trellis.ask("Who was Ada?", key="the-same")
assert run.state == "answered" and run.ended and "The script answers: Who was Ada?" in (run.answer or ""), run
assert run.reason == "final-answer" and run.pattern == "react", run
assert trellis.ask("Who was Ada?", key="the-same").run_id == run.run_id
assert trellis.run(run.run_id) == trellis.run(run)
assert trellis.runs(limit=1)[0].run_id == run.run_id
assert trellis.trace(run)["sessions"][0]["question"] == "Who was Ada?"

begun = trellis.begin("Who was Grace?", pattern="react", limits={"max-iterations": 5})
events = list(trellis.events(begun))
numbers = [event.seq for event in events if event.seq is not None]
assert numbers == sorted(set(numbers)), numbers
assert events[0].type == "run.started" and events[-1].type == "run.completed", events
assert events[-1].data["answer"] == trellis.wait(begun).answer
later = [event.seq for event in trellis.events(begun, after=numbers[1]) if event.seq is not None]
assert later == numbers[2:], later
assert list(trellis.events(begun, after=numbers[-1])) == []

# A run that is not waited for to its end, and is ended.
slow = trellis.ask("Please keep me waiting.", wait=1)
assert slow.state in ("queued", "running") and not slow.ended, slow
assert trellis.cancel(slow).state == "cancelled"

# A question to a person.
if "--approval" in sys.argv:
    parked = trellis.ask("Use careful-notes for Ada", pattern="react")
    assert parked.state == "waiting" and parked.waiting_for[0].tool == "careful-notes", parked
    assert "approve" in parked.waiting_for[0].options, parked
    done = trellis.decide(parked, "approve", reason="as agreed", question=parked.waiting_for[0])
    assert done.state == "answered", done

# Files.
with tempfile.TemporaryDirectory() as folder:
    text = Path(folder, "bridges.md")
    text.write_text("# Bridges\n\nThe old bridge carries 24 tonnes.\n")
    loaded = trellis.load(text, collection="works")
    assert isinstance(loaded, LoadedDocument) and loaded.passages == 1 and loaded.document, loaded
    rdf = Path(folder, "bridges.ttl")
    rdf.write_text('<https://example.org/bridge> <http://www.w3.org/2000/01/rdf-schema#label> "The old bridge" .')
    known = trellis.load(rdf, collection="works")
    assert isinstance(known, LoadedKnowledge) and (known.read, known.new) == (1, 1), known
    rdf.write_text("<https://example.org/bridge> nonsense")
    try:
        trellis.load(rdf, collection="works")
        raise AssertionError("nonsense was loaded")
    except TrellisError as error:
        assert error.status == 422 and ":1:30:" in str(error), error

# What is refused.
for wrong, status, words in (
    (lambda: trellis.ask("Who?", pattern="freestyle"), 400, "freestyle"),
    (lambda: trellis.run("nobody"), 404, "nobody"),
    (lambda: trellis.cancel(run), 409, "ended"),
    (lambda: trellis.decide(run, "approve"), 409, "ended"),
    (lambda: Trellis(sys.argv[1], workspace="elsewhere").runs(), 404, "workspace"),
):
    try:
        wrong()
        raise AssertionError(f"{words} was not refused")
    except TrellisError as error:
        assert error.status == status and words in str(error), (error.status, error)
print("client: all well")
