"""Asks a question, prints the answer while it is written, and then every choice that led to it.

    python3 ask.py "What is Company X?"
"""

import sys
from pathlib import Path

# In a program of your own: copy trellis_client.py beside it, and leave this line out.
sys.path.insert(0, str(Path(__file__).parents[2] / "clients/python"))

from trellis_client import Trellis  # noqa: E402

trellis = Trellis()  # http://127.0.0.1:8888, or what TRUSTGRAPH_URL and TRUSTGRAPH_TOKEN say
run = trellis.begin(sys.argv[1] if len(sys.argv) > 1 else "What is Company X?")

shown = False
for event in trellis.events(run):
    # Agents that others have sent out write, too; what the run answers is of its own session.
    if event.type == "chunk" and event.data["session_id"] == run.run_id and event.data["chunk_type"] == "answer":
        print(event.data["content"], end="", flush=True)
        shown = True

run = trellis.wait(run)
# Text is a preview and may be lost with a connection. The answer of the ended run is the one on record.
print("" if shown else run.answer)
print(f"\nrun {run.run_id}: {run.state}, by {run.pattern}")

for session in trellis.trace(run)["sessions"]:
    for step in session["steps"]:
        for decision in step.get("decisions", []):
            chosen, options = ", ".join(decision["chosen"]), ", ".join(decision["options"])
            print(f"{decision['kind']}: {chosen}   out of {options}   by {decision['decided_by']}")
