"""Diagnoses a sample with the stock SDK. Its argument is the address of the server, which has the schema `cities`."""

import sys

from trustgraph.api import Api

flow = Api(url=sys.argv[1]).flow().id("default")
sample = "ID,Abba City,People\n1,Oslo,709000\n"
print(flow.detect_type("id,name\n1,Oslo\n"))
print(flow.schema_selection(sample))
plain = flow.generate_descriptor("ID,Name,People\n1,Oslo,709000\n", "csv", "cities")
assert [mapping["source_field"] for mapping in plain["mappings"]] == ["ID", "Name", "People"], plain
whole = flow.diagnose_data("id;NAME;people\n1;Oslo;709000\n")
assert whole["detected-type"] == "csv", whole
assert whole["descriptor"]["format"]["options"]["delimiter"] == ";", whole
for mapping in whole["descriptor"]["mappings"]:
    print(mapping["source_field"], "->", mapping["target_field"])
decided = flow.decision_scoring(
    state={"message": "I was overcharged"},
    questions={"team": {"type": "choice", "options": ["sales", "billing"]}, "angry": {"type": "noul"}},
)
assert decided["answers"]["team"]["choice"] in ["sales", "billing"], decided
assert 0 <= decided["answers"]["angry"]["noul"] <= 1, decided
