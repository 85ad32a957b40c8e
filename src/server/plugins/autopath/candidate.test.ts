import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG, TYPE } from '../../wire/iana.ts';
import { readMessage, writeMessage } from '../../wire/message.ts';
import { parseName } from '../../wire/name.ts';
import { Query } from '../../transport/query.ts';
import { Candidate } from './candidate.ts';

const asked = 'Api.Example.default.svc.cluster.local.';

function query(): Query {
  const bytes = writeMessage({
    id: 77,
    flags: FLAG.RD | FLAG.CD,
    rcode: 0,
    question: [{ name: asked, type: TYPE.AAAA, class: 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns: { udpSize: 1400, version: 0, dnssecOk: true, options: [] },
  });
  const made = new Query();
  assert.equal(made.read(bytes, 0, bytes.length), 'serve');
  made.peerPort = 5353;
  made.local = '10.96.0.10';
  made.notes = new Map([['a', 'b']]);
  return made;
}

test('a candidate is the same query with another name', () => {
  const original = query();
  const suffix = parseName('compute.internal');
  const made = new Candidate().make(original, 'Api.Example.'.length, suffix, 0, suffix.length)!;
  assert.equal(made.name, 'api.example.compute.internal.');
  const { id, flags, question, edns } = readMessage(made.bytes, made.start, made.end);
  assert.deepEqual(question, [
    { name: 'Api.Example.compute.internal.', type: TYPE.AAAA, class: 1 },
  ]);
  assert.equal(id, 77);
  assert.equal(flags, FLAG.RD | FLAG.CD);
  assert.deepEqual(edns, { udpSize: 1400, version: 0, dnssecOk: true, options: [] });
  assert.deepEqual(
    [made.limit, made.dnssecOk, made.peerPort, made.local, made.notes],
    [original.limit, true, 5353, '10.96.0.10', original.notes],
  );
});

test('a stored candidate stays valid', () => {
  const original = query();
  const candidate = new Candidate();
  const root = parseName('.');
  const kept = candidate.make(original, 'Api.Example.'.length, root, 0, 1)!.keep();
  const suffix = parseName('other.internal');
  candidate.make(original, 'Api.Example.'.length, suffix, 0, suffix.length);
  assert.equal(kept.name, 'api.example.');
});
