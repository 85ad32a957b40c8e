import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeClusterSoa } from './cluster-soa.ts';
import { TYPE } from './iana.ts';
import { dataOf, readMessage } from './message.ts';
import { NAME_MAX, parseName, printName, type WireName } from './name.ts';
import { makeQueryMessage, QueryMessage } from './query-message.ts';
import { soa } from './record/table.ts';
import { MessageWriter, SECTION } from './writer.ts';

function zoneOf(bytes: number): WireName {
  const label = `${'a'.repeat(63)}.`;
  const zone = parseName(`${'b'.repeat(bytes - 2 - 3 * 64)}.${label.repeat(3)}`);
  assert.equal(zone.length, bytes);
  return zone;
}

test('a zone whose name leaves no room for ns.dns or hostmaster has its own name instead', () => {
  for (const [bytes, server, mailbox] of [
    [NAME_MAX - 11, 'ns.dns.', 'hostmaster.'],
    [NAME_MAX - 10, 'ns.dns.', ''],
    [NAME_MAX - 7, 'ns.dns.', ''],
    [NAME_MAX - 6, '', ''],
    [NAME_MAX, '', ''],
  ] as const) {
    const zone = zoneOf(bytes);
    const to = new MessageWriter();
    to.reply(makeQueryMessage(new QueryMessage(), zone, TYPE.SOA), 0);
    writeClusterSoa(to, SECTION.answer, zone, 1, 30);
    const reply = to.finish(0, 'test');
    const [record] = readMessage(reply.bytes, reply.start, reply.end).answer;
    const { mname, rname } = dataOf(record!, soa)!;
    assert.equal(mname, server + printName(zone), `${bytes} bytes`);
    assert.equal(rname, mailbox + printName(zone), `${bytes} bytes`);
  }
});
