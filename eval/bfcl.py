"""Calls and questions of the Berkeley Function Calling Leaderboard, in forms that this project reads.

    python3 eval/bfcl.py WHEEL FOLDER

WHEEL is the package `bfcl-eval` (version 4 of the benchmark, Apache License 2.0). FOLDER gets

    calls.jsonl    what was offered and what has to be called, for the readers of calls (crates/patterns/tests/bfcl.rs)
    sample.jsonl   a fixed sample of it, as it lies in crates/patterns/tests/bfcl-sample.jsonl
    suite.jsonl    a sample of the questions for `trellis eval`, with the checker `call`

Only the standard library is needed. The same package always gives the same files.
"""

import json
import pathlib
import sys
import zipfile

# Every n-th call of each kind is in the sample: about three hundred.
SAMPLE_EVERY = 9
# So many questions of each kind are in the suite.
QUESTIONS = 25
KINDS = [
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
]
# For the suite: no tool fits these.
IRRELEVANT = "irrelevance"
# More calls at once are not made by the program.
MOST_CALLS = 8


def lines(package: zipfile.ZipFile, name: str) -> list[dict]:
    text = package.read(f"bfcl_eval/data/{name}").decode("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def chosen(accepted: list):
    """The first of the accepted values; None if the argument may be left out."""
    given = [value for value in accepted if value != ""]
    if "" in accepted or not given:
        return None
    return plain(given[0])


def plain(value):
    """A value whose members are lists of accepted values, with one of each."""
    if isinstance(value, dict):
        members = {name: chosen(accepted) if isinstance(accepted, list) else accepted for name, accepted in value.items()}
        return {name: member for name, member in members.items() if member is not None}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def arguments(function: dict) -> list[dict]:
    kinds = {"dict": "object", "tuple": "array", "float": "number", "any": "string", "String": "string"}
    properties = function["parameters"].get("properties", {})
    return [
        {
            "name": name,
            "type": kinds.get(about.get("type", "string"), about.get("type", "string")),
            "description": about.get("description", ""),
        }
        for name, about in properties.items()
    ]


def items(package: zipfile.ZipFile, kind: str):
    """The questions of one kind with one conversation turn, what is offered, and what has to be called."""
    truths = {item["id"]: item["ground_truth"] for item in lines(package, f"possible_answer/BFCL_v4_{kind}.json")}
    for item in lines(package, f"BFCL_v4_{kind}.json"):
        truth = truths.get(item["id"])
        if truth and len(truth) <= MOST_CALLS and len(item["question"]) == 1:
            yield item, truth


def calls(package: zipfile.ZipFile) -> list[dict]:
    written = []
    for kind in KINDS:
        for item, truth in items(package, kind):
            called = [
                {
                    "name": name,
                    "arguments": {n: v for n, v in ((n, chosen(a)) for n, a in accepted.items()) if v is not None},
                }
                for call in truth
                for name, accepted in call.items()
            ]
            offered = {f["name"]: [a["name"] for a in arguments(f)] for f in item["function"]}
            written.append({"id": item["id"], "offered": offered, "calls": called})
    return written


def suite(package: zipfile.ZipFile) -> list[dict]:
    """Questions whose tools answer with a fixed text: only the calls are judged. Arguments with members of their own are
    left out, because the checker compares whole values."""
    written = []
    for kind in KINDS:
        asked = [one for one in items(package, kind) if is_flat(one[1])]
        for item, truth in asked[:QUESTIONS]:
            expected = [{"name": name, "arguments": accepted} for call in truth for name, accepted in call.items()]
            written.append(question(item, expected))
    written += [question(item, []) for item in lines(package, f"BFCL_v4_{IRRELEVANT}.json")[:QUESTIONS]]
    return written


def is_flat(truth: list[dict]) -> bool:
    values = [value for call in truth for accepted in call.values() for values in accepted.values() for value in values]
    nested = [item for value in values if isinstance(value, list) for item in value]
    return not any(isinstance(value, dict) for value in values + nested)


def question(item: dict, expected: list[dict]) -> dict:
    examples = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    recorded = {}
    for function in item["function"]:
        # What could be passed: the program offers the arguments that were recorded.
        every = {argument["name"]: examples.get(argument["type"], "") for argument in arguments(function)}
        own = [call["arguments"] for call in expected if call["name"] == function["name"]]
        picked = [{n: v for n, v in ((n, chosen(a)) for n, a in one.items()) if v is not None} for one in own]
        recorded[function["name"]] = [{"arguments": one, "result": "Done."} for one in [*picked, every]]
    said = "\n\n".join(message["content"] for message in item["question"][0])
    check = {"kind": "call", "calls": expected}
    return {"id": item["id"], "question": said, "pattern": "react", "recorded": recorded, "check": check}


def write(path: pathlib.Path, values: list[dict]) -> None:
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
    print(f"{path}: {len(values)} lines")


def main(wheel: pathlib.Path, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as package:
        all_calls = calls(package)
        write(folder / "calls.jsonl", all_calls)
        write(folder / "sample.jsonl", all_calls[::SAMPLE_EVERY])
        write(folder / "suite.jsonl", suite(package))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
