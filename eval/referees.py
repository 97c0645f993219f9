"""Material of others that judges what is done with the calls of a model, in forms that the acceptance tests read.

    python eval/referees.py INSPECT_EVALS BFCL FOLDER

INSPECT_EVALS and BFCL are the packages `inspect_evals` (MIT License) and `bfcl-eval` (Apache License 2.0). FOLDER gets

    inspect_evals/tau2    the tools, databases and tasks of tau2-bench, as they are
    attacks.jsonl         what AgentDojo plants in places that an agent reads, one text for each of its goals
    functions.jsonl       the functions that are offered in BFCL, with schemas in the words of JSON Schema
    calls.jsonl           calls that are right there, and the same with something missing or of another type
    irrelevant.jsonl      questions for which none of the functions that are offered is any use
    banking/, banking.jsonl   the documents of tau2's bank, and for each task what is asked for and which documents tell it

It needs the packages of `acceptance/requirements.txt`. The same packages always give the same files.
"""

import ast
import gzip
import json
import pathlib
import sys
import zipfile

import jsonschema

import bfcl

TAU2 = "inspect_evals/tau2/"
BANK = f"{TAU2}data/domains/banking_knowledge/"
DOJO = "inspect_evals/agentdojo/"
# What BFCL calls types, and what JSON Schema calls them.
TYPES = {"dict": "object", "float": "number", "double": "number", "long": "integer", "tuple": "array", "String": "string"}
JSON_TYPES = {"object", "number", "integer", "array", "string", "boolean", "null"}
# A value that is of none of these types, in quotes or not.
OTHER = {"integer": "seven", "number": "seven", "boolean": "perhaps", "array": 7, "object": 7}
IRRELEVANT = ["irrelevance", "live_irrelevance"]


def write(path: pathlib.Path, items: list) -> None:
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding="utf-8")


# --- AgentDojo


def constants(body: list[ast.stmt], known: dict) -> dict:
    """The names of a module or class whose values follow from constants."""
    found = dict(known)
    for statement in body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value:
            targets, value = [statement.target], statement.value
        else:
            continue
        try:
            made = eval(compile(ast.Expression(value), "constants", "eval"), {"__builtins__": {}}, found)
        except Exception:
            continue
        found.update({target.id: made for target in targets if isinstance(target, ast.Name)})
    return found


def attacks(package: zipfile.ZipFile) -> list[dict]:
    attack = ast.parse(package.read(f"{DOJO}attacks/attack.py"))
    template = constants(attack.body, {})["IMPORTANT_INSTRUCTIONS_PROMPT"].format(user_name="Emma Johnson")
    written = []
    for suite in ["banking", "slack", "travel", "workspace", "workspace_plus"]:
        module = ast.parse(package.read(f"{DOJO}task_suites/{suite}/injection_tasks.py"))
        outer = constants(module.body, {})
        for task in module.body:
            goal = constants(task.body, outer).get("GOAL") if isinstance(task, ast.ClassDef) else None
            if goal:
                written.append({"id": f"{suite}/{task.name}", "goal": goal, "text": template.format(goal=goal).strip()})
    return written


# --- BFCL


def schema(about):
    """A schema in the words of JSON Schema. What is of any type has none."""
    if isinstance(about, list):
        return [schema(item) for item in about]
    if not isinstance(about, dict):
        return about
    written = {}
    for name, value in about.items():
        if name == "type" and isinstance(value, str):
            value = TYPES.get(value, value)
            if value in JSON_TYPES:
                written[name] = value
        elif name == "properties" and isinstance(value, dict):
            written[name] = {member: schema(inner) for member, inner in value.items()}
        elif name in ("required", "enum", "default", "description"):
            written[name] = value
        else:
            written[name] = schema(value)
    return written


def functions(package: zipfile.ZipFile) -> dict[str, dict]:
    """All functions that are offered, by names that differ if the functions do."""
    found: dict[str, dict] = {}
    for kind in bfcl.KINDS + IRRELEVANT:
        for item in bfcl.lines(package, f"BFCL_v4_{kind}.json"):
            for function in item["function"]:
                found.setdefault(unique(function), function)
    return found


def unique(function: dict) -> str:
    return json.dumps([function["name"], function["parameters"]], sort_keys=True)


def named(found: dict[str, dict]) -> tuple[dict[str, str], list[dict]]:
    names, written, taken = {}, [], {}
    for key, function in found.items():
        number = taken[function["name"]] = taken.get(function["name"], 0) + 1
        names[key] = function["name"] if number == 1 else f"{function['name']}-{number}"
        described = {"name": names[key], "description": function.get("description", "")}
        # What lists tools wants an object; everything below it is left as it is.
        original = {**function["parameters"], "type": "object"}
        written.append({**described, "schema": valid(schema(function["parameters"])), "original": original})
        written[-1]["original_valid"] = is_valid(original)
    return names, written


def is_valid(parameters: dict) -> bool:
    try:
        jsonschema.Draft202012Validator.check_schema(parameters)
    except jsonschema.SchemaError:
        return False
    return True


def valid(parameters: dict) -> dict:
    jsonschema.Draft202012Validator.check_schema(parameters)
    return parameters


def calls(package: zipfile.ZipFile, names: dict[str, str]) -> list[dict]:
    written, seen = [], set()

    def add(call: dict) -> None:
        text = json.dumps(call, sort_keys=True)
        if text not in seen:
            seen.add(text)
            written.append(call)

    for kind in bfcl.KINDS:
        for item, truth in bfcl.items(package, kind):
            offered = {function["name"]: function for function in item["function"]}
            for call in truth:
                for name, accepted in call.items():
                    given = {n: v for n, v in ((n, bfcl.chosen(a)) for n, a in accepted.items()) if v is not None}
                    for variant in variants(schema(offered[name]["parameters"]), given):
                        add({"function": names[unique(offered[name])], **variant})
    return written


def variants(parameters: dict, given: dict):
    """A call as it is right, without something that is required, and with something of another type."""
    is_right = jsonschema.Draft202012Validator(parameters).is_valid(given)
    yield {"arguments": given, "right": is_right}
    properties = parameters.get("properties", {})
    missing = [name for name in parameters.get("required", []) if name in given and name in properties]
    if missing:
        rest = {name: value for name, value in given.items() if name != missing[0]}
        yield {"arguments": rest, "right": False, "names": missing[0]}
    typed = [name for name in given if properties.get(name, {}).get("type") in OTHER]
    if typed:
        other = OTHER[properties[typed[0]]["type"]]
        yield {"arguments": {**given, typed[0]: other}, "right": False, "names": typed[0]}


def irrelevant(package: zipfile.ZipFile, names: dict[str, str]) -> list[dict]:
    written = []
    for kind in IRRELEVANT:
        for item in bfcl.lines(package, f"BFCL_v4_{kind}.json"):
            asked = [message["content"] for message in item["question"][0] if message["role"] == "user"]
            offered = [names[unique(function)] for function in item["function"]]
            if asked and offered:
                written.append({"id": item["id"], "question": asked[-1], "offered": offered})
    return written


# --- the bank of tau2


def bank(package: zipfile.ZipFile, folder: pathlib.Path) -> list[dict]:
    (folder / "banking").mkdir(exist_ok=True)
    known = set()
    for document in json.loads(gzip.decompress(package.read(f"{BANK}documents.json.gz"))):
        known.add(document["id"])
        text = f"# {document['title']}\n\n{document['content']}\n"
        (folder / "banking" / f"{document['id']}.md").write_text(text, encoding="utf-8")
    written = []
    for task in json.loads(package.read(f"{BANK}tasks.json")):
        wanted = sorted(known.intersection(task.get("required_documents") or []))
        if wanted:
            question = task["user_scenario"]["instructions"]
            question = question if isinstance(question, str) else json.dumps(question)
            written.append({"id": task["id"], "question": question, "documents": wanted})
    return written


def main() -> None:
    inspect_evals, leaderboard, folder = zipfile.ZipFile(sys.argv[1]), zipfile.ZipFile(sys.argv[2]), pathlib.Path(sys.argv[3])
    inspect_evals.extractall(folder, [name for name in inspect_evals.namelist() if name.startswith(TAU2)])
    write(folder / "attacks.jsonl", attacks(inspect_evals))
    names, described = named(functions(leaderboard))
    write(folder / "functions.jsonl", described)
    write(folder / "calls.jsonl", calls(leaderboard, names))
    write(folder / "irrelevant.jsonl", irrelevant(leaderboard, names))
    write(folder / "banking.jsonl", bank(inspect_evals, folder))


if __name__ == "__main__":
    main()
