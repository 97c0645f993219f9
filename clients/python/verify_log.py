#!/usr/bin/env python3
"""Checks a log exported by `trellis log export` without any code of Trellis.

    pip install cryptography
    trellis log export log.jsonl
    python3 verify_log.py log.jsonl                      # the log agrees with the checkpoint inside it
    python3 verify_log.py log.jsonl --anchor kept.txt    # and with a checkpoint that was kept from earlier
    python3 verify_log.py log.jsonl --key KEY            # which must be signed by this key (`trellis log key`)

Exit code 0: everything that the checkpoint covers is there, unchanged. 1: it is not, and what is wrong is printed.

What is checked:
- every entry is a leaf of a Merkle tree hashed as in RFC 6962; the tree has the root that the checkpoint says
- the checkpoint is a signed note (C2SP), signed with Ed25519
- the body of each record has the hash that its header says
- each text has the salted hash that stands in the body, unless it was erased
"""
import argparse
import base64
import hashlib
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


class Tree:
    """The right edge of the tree: enough to append to it, and to know its root."""

    def __init__(self):
        self.size, self.peaks = 0, []

    def append(self, leaf):
        node, size = leaf, self.size
        while size & 1:
            node, size = sha256(b"\1", self.peaks.pop(), node), size >> 1
        self.peaks.append(node)
        self.size += 1

    def root(self):
        if not self.peaks:
            return sha256()
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = sha256(b"\1", peak, root)
        return root


class Checkpoint:
    def __init__(self, note):
        self.body, _, rest = note.partition("\n\n")
        self.body += "\n"
        self.origin, size, root = self.body.splitlines()[:3]
        self.size, self.root = int(size), base64.b64decode(root)
        self.signatures = [line[2:].rsplit(" ", 1) for line in rest.splitlines() if line.startswith("\u2014 ")]

    def check_signature(self, key):
        """`key` is name+hash+base64(kind, public key). None if the signature holds, else what is wrong."""
        name, _, encoded = key.strip().split("+", 2)
        raw = base64.b64decode(encoded)
        if raw[:1] != b"\1":
            return "the key is not an Ed25519 key"
        short = sha256(name.encode(), b"\n", raw)[:4]
        for signer, signature in self.signatures:
            signature = base64.b64decode(signature)
            if signer == name and signature[:4] == short:
                try:
                    Ed25519PublicKey.from_public_bytes(raw[1:]).verify(signature[4:], self.body.encode())
                    return None
                except InvalidSignature:
                    return f"the signature by {name} does not hold"
        return f"no signature is by {name}"


def text_hashes(value):
    """The salted hashes that stand in a body in the place of its texts, in order."""
    if isinstance(value, list):
        for item in value:
            yield from text_hashes(item)
    elif isinstance(value, dict):
        mark = next(iter(value), "") if len(value) == 1 else ""
        if mark in ("$text", "$hash", "$list", "$map"):
            yield value[mark]
        else:
            for key, member in value.items():
                if key != "parameters":
                    yield from text_hashes(member)


def check_record(data, texts):
    """What is wrong with a record, given the bytes that the log covers and the line of its texts."""
    header_line, _, body = data.partition(b"\n")
    header = json.loads(header_line)
    name = f"{header['session']}/{header['name']} of run {header['run']}"
    if hashlib.sha256(body).hexdigest() != header["content"]:
        yield f"record {name} does not have the content that its header says"
    if header["format"] < 3:
        return  # its texts are in its body
    hashes, texts = list(text_hashes(json.loads(body))), json.loads(texts or "[]")
    if len(hashes) != len(texts):
        yield f"record {name} has {len(hashes)} hashes for {len(texts)} texts"
    for expected, text in zip(hashes, texts):
        if isinstance(text, dict) or isinstance(text[1], dict):
            continue  # erased, or too large to be in the export
        salt, said = bytes.fromhex(text[0]), text[1].encode("utf-8", "surrogatepass")
        if sha256(salt, said).hex() != expected:
            yield f"a text of record {name} is not what its hash says"


def verify(lines, anchor=None, key=None):
    """Everything that is wrong, one line each."""
    head = json.loads(next(lines))
    newest = Checkpoint(head["checkpoint"])
    tree, pending, replaced, told = Tree(), [], [], set()
    for number, line in enumerate(lines):
        entry = json.loads(line)
        data = base64.b64decode(entry["input"])
        if entry["number"] != number:
            yield f"entry {number} is missing"
            return
        if anchor and tree.size == anchor.size and tree.root() != anchor.root:
            yield "the beginning of the log is not the one that the kept checkpoint covers"
        kind, _, rest = data.partition(b"\n")
        leaf = sha256(b"\0", data)
        if kind == b"erasure":
            told.update((name, left) for name, left in json.loads(rest.partition(b"\n")[2]).get("replaced", []))
        if kind == b"record" and "leaf" in entry:
            # Of a format that had its texts in the record: an erasure must tell what is left of it.
            header = json.loads(rest.partition(b"\n")[0])
            replaced.append((f"{header['session']}/{header['name']}", leaf.hex()))
            leaf = bytes.fromhex(entry["leaf"])
        elif kind == b"record":
            pending.extend(check_record(rest, entry.get("texts")))
        tree.append(leaf)
    yield from pending
    for name, left in replaced:
        if (name, left) not in told:
            yield f"record {name} was replaced, and no erasure tells of it"
    for checkpoint, what in [(newest, "its own checkpoint"), (anchor, "the kept checkpoint")]:
        if checkpoint and checkpoint.size > tree.size:
            yield f"{checkpoint.size - tree.size} of {checkpoint.size} entries that {what} covers are missing"
        elif checkpoint and checkpoint.size == tree.size and checkpoint.root != tree.root():
            yield f"the log does not have the root that {what} says"
    for checkpoint in filter(None, [newest, anchor]):
        wrong = checkpoint.check_signature(key or head["key"])
        if wrong:
            yield wrong


def main():
    arguments = argparse.ArgumentParser(description="Checks a log exported by `trellis log export`.")
    arguments.add_argument("log", help="the exported log")
    arguments.add_argument("--anchor", help="a checkpoint that was kept from earlier")
    arguments.add_argument("--key", help="the public key, as `trellis log key` prints it")
    given = arguments.parse_args()
    anchor = Checkpoint(open(given.anchor, encoding="utf-8").read()) if given.anchor else None
    with open(given.log, encoding="utf-8") as lines:
        faults = list(verify(lines, anchor, given.key))
    for fault in faults:
        print(f"fault: {fault}")
    if not faults:
        print("ok: the log is the one that its checkpoint" + (" and the kept one cover" if anchor else " covers"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
