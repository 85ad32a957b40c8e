import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TYPE } from './iana.ts';
import { readMessage, writeMessage, type Message } from './message.ts';
import { parseName } from './name.ts';
import { printMessage, printRecord } from './print.ts';
import { ReadError } from './reader.ts';
import { withQuestion } from './requestion.ts';
import { failure, type Reply } from './reply.ts';
import { fromUpstream } from './upstream.ts';
import { parseRecord } from './zone-text.ts';
import { makeQueryMessage, QueryMessage } from './query-message.ts';

function reply(name: string, answer: readonly string[], authority: readonly string[] = []): Reply {
  const message: Message = {
    id: 1,
    flags: 0x8180,
    rcode: 0,
    question: [{ name, type: TYPE.A, class: 1 }],
    answer: answer.map((line) => parseRecord(line)),
    authority: authority.map((line) => parseRecord(line)),
    additional: [],
    edns: null,
  };
  const taken = fromUpstream(writeMessage(message));
  if (taken instanceof ReadError) throw taken;
  return taken;
}

function query(name: string, type: number = TYPE.A): QueryMessage {
  return makeQueryMessage(new QueryMessage(), parseName(name), type);
}

function lines({ bytes, start, end }: Reply): string[] {
  const { answer, authority, additional } = readMessage(bytes, start, end);
  return [...answer, ...authority, ...additional].map((record) =>
    printRecord(record).replace(/\s+/g, ' '),
  );
}

describe('a reply under a different question', () => {
  test('autopath: the search name is an alias for the name that was found', () => {
    const found = reply('example.com.', [
      'example.com. 300 A 192.0.2.1',
      'example.com. 300 A 192.0.2.2',
    ]);
    const moved = withQuestion(found, query('Example.com.default.svc.cluster.local'), 'stay', 300);
    assert.equal(
      printMessage(readMessage(moved.bytes, moved.start, moved.end)),
      [
        ';; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1',
        ';; flags: qr rd ra; QUERY: 1, ANSWER: 3, AUTHORITY: 0, ADDITIONAL: 0',
        '',
        ';; QUESTION SECTION:',
        ';Example.com.default.svc.cluster.local. IN A',
        '',
        ';; ANSWER SECTION:',
        'Example.com.default.svc.cluster.local. 300 IN CNAME example.com.',
        'example.com.\t\t300\tIN\tA\t192.0.2.1',
        'example.com.\t\t300\tIN\tA\t192.0.2.2',
        '',
        '',
      ].join('\n'),
    );
  });

  test('search path without data: names in the authority section stay complete', () => {
    const nothing = reply(
      'b.svc.cluster.local.',
      [],
      ['cluster.local. 30 SOA ns.dns.cluster.local. host.cluster.local. 1 2 3 4 5'],
    );
    const moved = withQuestion(nothing, query('b.default.svc.cluster.local'), 'stay');
    assert.deepEqual(lines(moved), [
      'cluster.local. 30 IN SOA ns.dns.cluster.local. host.cluster.local. 1 2 3 4 5',
    ]);
    // The suffix that both questions share is still a pointer target.
    assert.equal(moved.size, nothing.size + 'default.'.length);
  });

  test('rewrite: owners change to the name the client queried, and data does not', () => {
    const found = reply('real.example.', [
      'real.example. 30 CNAME x.real.example.',
      'x.real.example. 30 A 10.0.0.1',
      'real.example. 30 MX 1 real.example.',
    ]);
    assert.deepEqual(lines(withQuestion(found, query('alias.test.'))), [
      'alias.test. 30 IN CNAME x.real.example.',
      'x.real.example. 30 IN A 10.0.0.1',
      'alias.test. 30 IN MX 1 real.example.',
    ]);
  });

  test('the same question gives the same reply, another type a copy', () => {
    const found = reply('a.example.', ['a.example. A 10.0.0.1']);
    assert.equal(withQuestion(found, query('A.example')), found);
    const other = withQuestion(found, query('a.example', TYPE.AAAA));
    assert.deepEqual(lines(other), ['a.example. 3600 IN A 10.0.0.1']);
    assert.equal(readMessage(other.bytes, other.start, other.end).question[0]!.type, TYPE.AAAA);
  });

  test('a bare result code stays unchanged', () => {
    const bare = failure(2, 'forward');
    assert.equal(withQuestion(bare, query('a.example'), 'stay', 5), bare);
  });

  test('a reply that no longer fits into a message is cut between records, with TC', () => {
    const records = Array.from({ length: 4080 }, () => 'a.example. 30 A 10.0.0.1');
    const full = reply('a.example.', records, ['example. 30 NS ns.example.']);
    const long = Array<string>(4).fill('x'.repeat(60)).join('.');
    const moved = withQuestion(full, query(long), 'stay', 30);
    assert.ok(moved.size <= 65_535);
    assert.equal(moved.truncated, true);
    const { answer, authority } = readMessage(moved.bytes, moved.start, moved.end);
    assert.deepEqual([answer[0]!.type, authority.length], [TYPE.CNAME, 0]);
    assert.ok(answer.length > 4000 && answer.length < 4081);
  });
});
