"""Configuration, flows, collections and documents through the SDK."""

import asyncio
import os
import sys
import tempfile

from trustgraph.api import Api, ConfigKey, ConfigValue, Triple, Uri, Literal

url = sys.argv[1]


def config(api):
    items = api.config()
    items.put([ConfigValue("greeting", "a", "1"), ConfigValue("greeting", "b", "2")])
    found = items.get([ConfigKey("greeting", "b"), ConfigKey("greeting", "none"), ConfigKey("greeting", "a")])
    assert [(value.key, value.value) for value in found] == [("b", "2"), ("none", None), ("a", "1")], found
    assert sorted(items.list("greeting")) == ["a", "b"]
    assert sorted(value.value for value in items.get_values("greeting")) == ["1", "2"]
    everything, version = items.all()
    assert everything["greeting"] == {"a": "1", "b": "2"}, everything
    everywhere = items.get_values_all_workspaces("greeting")
    assert {value.workspace for value in everywhere} == {"default"}, everywhere
    items.delete([ConfigKey("greeting", "a"), ConfigKey("greeting", "b")])
    assert items.list("greeting") == []
    assert items.all()[1] > version


def flows(api):
    flow = api.flow()
    assert "default" in flow.list()
    blueprint = flow.list_blueprints()[0]
    definition = flow.get_blueprint(blueprint)
    assert definition["description"], definition
    assert flow.get("default")["blueprint-name"] == blueprint
    flow.put_blueprint("own", {"description": "mine"})
    assert flow.get_blueprint("own") == {"description": "mine"}
    flow.start("own", "second", "Another way in", {"colour": "green"})
    assert flow.get("second")["parameters"] == {"colour": "green"}
    assert flow.id("second").agent("Who was Ada?") == "The script answers: Who was Ada?"
    flow.stop("second")
    flow.delete_blueprint("own")
    assert "second" not in flow.list() and "own" not in flow.list_blueprints()


async def asynchronous_flows():
    async with Api(url) as api:
        flow = api.async_flow()
        assert "default" in await flow.list()
        blueprint = (await flow.list_classes())[0]
        assert (await flow.get_class(blueprint))["description"]
        await flow.put_class("own", {"description": "mine"})
        await flow.start("own", "third", "Another way in", {"colour": "blue"})
        record = await flow.get("third")
        assert record["blueprint-name"] == "own" and record["parameters"] == {"colour": "blue"}, record
        await flow.stop("third")
        await flow.delete_class("own")
        assert "third" not in await flow.list()


def collections(api):
    collection = api.collection()
    made = collection.update_collection("history", name="History", description="Old things", tags=["past"])
    assert (made.collection, made.name, made.description, made.tags) == ("history", "History", "Old things", ["past"])
    assert collection.update_collection("history", name="Histories").description == "Old things"
    listed = {one.collection: one for one in collection.list_collections()}
    assert listed["history"].name == "Histories", listed
    assert [one.collection for one in collection.list_collections(tag_filter=["past"])] == ["history"]
    assert collection.list_collections(tag_filter=["future"]) == []
    collection.delete_collection("history")
    assert "history" not in {one.collection for one in collection.list_collections()}


def documents(api):
    library = api.library()
    about = [Triple(Uri("urn:doc:note"), Uri("http://www.w3.org/2000/01/rdf-schema#label"), Literal("A note"))]
    library.add_document(b"Ada wrote it.", "urn:doc:note", about, "Note", "Short", "text/plain", ["history"])
    assert library.get_document_content("urn:doc:note") == b"Ada wrote it."
    note = library.get_document("urn:doc:note")
    assert (note.title, note.comments, note.kind, note.tags) == ("Note", "Short", "text/plain", ["history"]), note
    assert str(note.metadata[0].o) == "A note", note
    note.title = "Better note"
    library.update_document("urn:doc:note", note)
    listed = {one.id: one for one in library.get_documents()}
    assert listed["urn:doc:note"].title == "Better note" and listed["urn:doc:note"].kind == "text/plain", listed

    large = bytes(number * 7 % 253 for number in range(5 * 1024 * 1024))
    steps = []
    library.add_document(
        large, "urn:doc:large", None, "Large", "", "application/octet-stream", on_progress=lambda *step: steps.append(step)
    )
    assert steps[-1] == (len(large), len(large)) and len(steps) > 1, steps
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy")
        assert library.stream_document_to_file("urn:doc:large", copy) == len(large)
        assert open(copy, "rb").read() == large
    assert library.get_pending_uploads() == []
    for id in ["urn:doc:note", "urn:doc:large"]:
        library.remove_document(id)
    assert library.get_documents() == []


with Api(url) as api:
    config(api)
    flows(api)
    collections(api)
    documents(api)
asyncio.run(asynchronous_flows())
print("workspace: all well")
