#!/usr/bin/env node
// check_bundle.mjs BUNDLE PUBLIC_KEY: verifies a bundle as docs/formats/bundle.md says, holding one record at a time.
import { createHash, createPublicKey, verify } from "node:crypto";
import { createReadStream } from "node:fs";
const [file, pin] = process.argv.slice(2), magic = "rowlock/bundle/1\n", tenants = new Map();
const wrong = (what) => { console.log(`TAMPERED: ${what}`); process.exit(1); };
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
async function* records() {
    let held = Buffer.alloc(0), at = -1;  // Where the next record begins; -1: the file does.
    for await (const piece of createReadStream(file)) {
        held = Buffer.concat([held.subarray(Math.max(at, 0)), piece]);
        at = at >= 0 ? 0 : held.length < 17 ? -1 : held.toString("utf8", 0, 17) === magic ? 17 : wrong("this is no bundle");
        for (let end; at >= 0 && at + 5 <= held.length && (end = at + 5 + held.readUInt32BE(at + 1)) <= held.length; at = end)
            yield [String.fromCharCode(held[at]), held.subarray(at + 5, end)];
    }
    if (at !== held.length) wrong("the file is cut off");
}
function fields(payload, count, all = []) {
    for (let at = 0, end; at < payload.length; at = end) {
        end = at + 5 + (at + 5 <= payload.length ? payload.readUInt32BE(at + 1) : 0);
        if (payload[at] > 1 || (payload[at] === 0 && end > at + 5) || end > payload.length) wrong("a field is damaged");
        all.push(payload[at] === 0 ? null : payload.subarray(at + 5, end));
    }
    return all.length === count ? all : wrong("a record has too few or too many fields");
}
function signedText(note) {
    const [, name, id, key] = pin.match(/^([^+]+)\+(.{8})\+(.+)$/), typed = Buffer.from(key, "base64");
    const text = note.subarray(0, note.lastIndexOf("\n\n") + 1), lines = note.subarray(text.length + 1).toString().split("\n");
    const signature = Buffer.from(lines.find((each) => each.startsWith(`\u2014 ${name} `))?.split(" ")[2] ?? "", "base64");
    const key32 = { kty: "OKP", crv: "Ed25519", x: typed.toString("base64url", 1) };
    const good = verify(null, text, createPublicKey({ key: key32, format: "jwk" }), signature.subarray(4));
    return good && signature.toString("hex", 0, 4) === id ? text.toString() : wrong("the note is not signed by the pinned key");
}
let order = "", entries = 0, known = 0, ledger, text, counts;
for await (const [type, payload] of records()) {
    if (type !== "E" || !order.endsWith("E")) order += type;
    if (type === "H") ledger = fields(payload, 2)[0].toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    if (type === "N") text = signedText(payload);
    if (type === "Z") counts = fields(payload, 2).map((field) => field.readBigInt64BE()).join();
    if (type !== "E") continue;
    const entry = fields(payload, 14), tenant = entry[3].toString(), seq = Number(entry[4].readBigInt64BE());
    const head = tenants.get(tenant) ?? { first: seq, last: seq - 1, hash: Buffer.alloc(32), gaps: [] };
    head.hash = sha256(head.hash, payload.subarray(0, -37));
    if (seq <= head.last || !head.hash.equals(entry[13])) wrong(`entry ${seq} of ${tenant} is not what stood here`);
    const says = entry[8]?.toString() === "rowlock.acknowledge" ? JSON.parse(entry[10]) : { last_seq: -Infinity };
    const left = ([from, to]) => [[from, Math.min(to, says.seq - 1)], [Math.max(from, says.last_seq + 1), to]];
    if (says.kind === "missing") head.gaps = head.gaps.flatMap(left).filter(([from, to]) => from <= to);
    if (seq > head.last + 1) head.gaps.push([head.last + 1, seq - 1]);
    [entries, known] = [entries + 1, known + (says.last_seq >= head.first)];
    tenants.set(tenant, Object.assign(head, { last: seq, mac: entry[12].toString("base64") }));
}
const lines = (/^HE?NZ$/.test(order) ? text : wrong("records are missing, or out of order")).split("\n").slice(0, -1);
for (const [tenant, first, last, mac, , hash] of lines.slice(4).map((line) => line.split(" "))) {
    const name = decodeURIComponent(tenant), head = tenants.get(name);
    const same = head?.first === +first && head.last === +last && head.mac === mac && head.hash.toString("base64") === hash;
    if (!same || head.gaps.length > 0) wrong(`the entries of ${name} are not all that were signed`);
}
const fits = lines[0] + "\n" === magic && lines[1] === `ledger ${ledger}` && lines.length - 4 === tenants.size;
if (!fits || counts !== `${tenants.size},${entries}`) wrong("the note or the trailer is of something else");
console.log(`INTACT${known ? ` BUT FOR ${known} ACKNOWLEDGED` : ""}: ${tenants.size} tenants, ${entries} entries, ${lines[2]}`);
