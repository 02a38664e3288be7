#!/usr/bin/env python3
"""Recomputes the known answers of docs/formats/audit-entry.md with nothing but Python's standard library.

check_vectors.py [FILE] [--write]: FILE has one JSON object a line; --write puts the answers in."""
import hashlib, hmac, json, pathlib, sys, uuid

def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()

def hkdf(key, salt, info, size):
    return mac(mac(salt or bytes(32), key), info + b"\x01")[:size]

def field(value):
    if value is None:
        return bytes(5)
    value = value.to_bytes(8, "big", signed=True) if isinstance(value, int) else value
    value = value.encode() if isinstance(value, str) else value
    return b"\x01" + len(value).to_bytes(4, "big") + value

def frame(*fields):
    return b"".join(map(field, fields))

def answers(v):
    secret, ledger = bytes.fromhex(v["key"]), uuid.UUID(v["ledger"]).bytes
    key_id = "k" + hkdf(secret, b"", b"rowlock/key-id/1", 6).hex()
    sub_key = hkdf(secret, ledger, frame("rowlock/sub-key/1", "chain", v["tenant"]), 32)
    start = ("HMAC-SHA-256", key_id, v["tenant"])
    if v["what"] == "genesis":
        message = frame("rowlock/genesis/1", *start, ledger)
    else:
        own = {"rowlock.key_rotation": "rotation", "rowlock.resume": "resume", "rowlock.retirement": "retirement",
               "rowlock.acknowledge": "acknowledge"}
        domain = own.get(v["action"], "entry")
        message = frame(f"rowlock/{domain}/1", *start, v["seq"], uuid.UUID(v["entry_id"]).bytes, v["recorded_at"], v["actor"],
                        v["action"], v["object"], v["data"], bytes.fromhex(v["prev_mac"]))
    return {"key_id": key_id, "frame": message.hex(), "mac": mac(sub_key, message).hex()}

arguments = [a for a in sys.argv[1:] if a != "--write"]
default = pathlib.Path(__file__).parent.parent / "tests/unit/vectors/audit-entry.jsonl"
path = pathlib.Path(arguments[0]) if arguments else default
vectors = [json.loads(line) for line in path.read_text().splitlines()]
wrong = [v["what"] for v in vectors if any(v.get(name) != value for name, value in answers(v).items())]
if "--write" in sys.argv:
    path.write_text("".join(json.dumps(v | answers(v)) + "\n" for v in vectors))
else:
    print(f"{len(vectors)} vectors, {len(wrong)} wrong", *wrong)
    sys.exit(1 if wrong else 0)
