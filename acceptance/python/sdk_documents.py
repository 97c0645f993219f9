"""Loads documents with the stock SDK, and asks about them. Its argument is the address of the server."""

import sys

from trustgraph.api import Api

api = Api(url=sys.argv[1])
flow = api.flow().id("default")
text = "# Bridges\n\nThe bridge of Ada carries 24 tonnes."
flow.load_text(text.encode("utf-8"), id="bridges.md", collection="works")
flow.load_document(b"<html><title>Tunnels</title><p>The tunnel of Bob is closed.", id="tunnels.html", collection="works")
print(flow.document_rag(query="What does the bridge carry?", collection="works").text)
print(len(flow.embeddings(["abc", "h"])))
