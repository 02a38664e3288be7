#!/usr/bin/env node
// check_bundle.mjs BUNDLE PUBLIC_KEY: verifies a bundle as docs/formats/bundle.md says, with nothing but Node's own modules.
// Prints what is wrong and exits with 1, or INTACT and exits with 0.
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";

const [file, pin] = process.argv.slice(2);
const bytes = readFileSync(file);
const wrong = (what) => { console.log(`TAMPERED: ${what}`); process.exit(1); };
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();

function fields(payload) {
    const all = [];
    for (let at = 0; at < payload.length;) {
        const size = at + 5 <= payload.length ? payload.readUInt32BE(at + 1) : Infinity;
        if (payload[at] > 1 || (payload[at] === 0 && size !== 0) || at + 5 + size > payload.length) wrong("a field is damaged");
        all.push(payload[at] === 0 ? null : payload.subarray(at + 5, at + 5 + size));
        at += 5 + size;
    }
    return all;
}

function signedText(note) {
    const split = note.lastIndexOf("\n\n");
    const text = note.subarray(0, split + 1);
    const [, name, id, key] = pin.match(/^([^+]+)\+(.{8})\+(.+)$/);
    const typed = Buffer.from(key, "base64");
    if (sha256(name, "\n", typed).subarray(0, 4).toString("hex") !== id) wrong("the public key is damaged");
    const line = note.subarray(split + 2).toString().split("\n").find((each) => each.startsWith(`\u2014 ${name} `));
    const signature = Buffer.from(line?.split(" ")[2] ?? "", "base64");
    const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), typed.subarray(1)]);
    const publicKey = createPublicKey({ key: spki, format: "der", type: "spki" });
    const good = signature.subarray(0, 4).toString("hex") === id && verify(null, text, publicKey, signature.subarray(4));
    if (!good) wrong("the note is not signed by the pinned key");
    return text.toString();
}

let at = 17, order = "", ledger, entries = 0, text, trailer;
const heads = new Map();
if (bytes.subarray(0, at).toString() !== "rowlock/bundle/1\n") wrong("this is no bundle");
while (at < bytes.length) {
    const end = at + 5 <= bytes.length ? at + 5 + bytes.readUInt32BE(at + 1) : Infinity;
    if (end > bytes.length) wrong("the file is cut off");
    const type = String.fromCharCode(bytes[at]), payload = bytes.subarray(at + 5, end);
    if (type !== "E" || !order.endsWith("E")) order += type;
    if (type === "H") ledger = fields(payload)[0].toString("hex").replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
    if (type === "N") text = signedText(payload);
    if (type === "Z") trailer = fields(payload).map((field) => Number(field.readBigInt64BE()));
    if (type === "E") {
        const entry = fields(payload), tenant = entry[3].toString(), seq = entry[4].readBigInt64BE();
        const head = heads.get(tenant) ?? { first: seq, last: seq - 1n, hash: Buffer.alloc(32) };
        if (entry.length !== 14 || seq !== head.last + 1n) wrong(`entry ${seq} of ${tenant} is not at its place`);
        head.hash = sha256(head.hash, payload.subarray(0, payload.length - 37));
        if (!head.hash.equals(entry[13])) wrong(`entry ${seq} of ${tenant} is not what was hashed`);
        heads.set(tenant, { ...head, last: seq, mac: entry[12] });
        ++entries;
    }
    at = end;
}
if (!/^HE?NZ$/.test(order)) wrong("records are missing, or out of order");
const lines = text.split("\n").slice(0, -1);
if (lines[0] !== "rowlock/bundle/1" || lines[1] !== `ledger ${ledger}`) wrong("the note is of something else");
for (const [tenant, first, last, mac, , hash] of lines.slice(4).map((line) => line.split(" "))) {
    const name = decodeURIComponent(tenant), head = heads.get(name);
    const same = head && `${head.first} ${head.last}` === `${first} ${last}` && head.hash.toString("base64") === hash;
    if (!same || head.mac.toString("base64") !== mac) wrong(`the entries of ${name} are not those that were signed`);
    heads.delete(name);
}
if (heads.size > 0 || trailer[0] !== lines.length - 4 || trailer[1] !== entries) wrong("the counts do not fit");
console.log(`INTACT: ${trailer[0]} tenants, ${entries} entries, ledger ${ledger}, ${lines[2]}`);
