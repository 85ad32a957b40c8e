import assert from 'node:assert/strict';
import { test } from 'node:test';
import { processAsker } from '../../../../test/kit/askers.ts';
import { addressRecord, dnsMessage } from '../../../../test/kit/packets.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import type { SeenExchange, SeenLookup } from '../../../tools/capture/pair/seen-exchange.ts';
import { paintFor } from '../page.ts';
import { askerDetails, askerText } from './asker-rows.ts';
import { exchangeDocument, lookupRows } from './capture-rows.ts';

const curl = processAsker(1, 'curl');
const cache = processAsker(2, 'node-cache');
const coredns = processAsker(3, 'coredns');
const START = Date.UTC(2026, 10, 22, 3, 7, 20);

function exchange(
  [sentMs, repliedMs]: readonly [number, number],
  [from, to]: readonly [string, string],
  more: Partial<SeenExchange> = {},
): SeenExchange {
  const name = 'api.example.com.';
  const answer = [addressRecord(name, '192.0.2.80')];
  return {
    protocol: 'udp',
    client: { address: from, port: 40_000 },
    server: { address: to, port: 53 },
    name,
    type: TYPE.A,
    sentMs: START + sentMs,
    repliedMs: START + repliedMs,
    rcode: 0,
    answers: 1,
    ending: 'answered',
    attempt: 1,
    stray: null,
    replyFlags: 0,
    hops: [],
    queryFrame: 0,
    replyFrame: 0,
    query: dnsMessage(name, 'A'),
    reply: dnsMessage(name, 'A', { reply: true, answer }),
    ...more,
  } as unknown as SeenExchange;
}

const last = exchange([2, 3], ['10.244.3.7', '192.0.2.53'], { asker: coredns });
const middle = exchange([1, 4], ['10.0.0.1', '10.96.0.11'], {
  behind: { address: '10.244.3.7', port: 53 },
  asker: cache,
  answerer: coredns,
  upstream: [last],
});
const first = exchange([0, 5], ['10.244.1.7', '169.254.20.10'], {
  asker: curl,
  answerer: cache,
  upstream: [middle],
});

/** The rows of a lookup, without those of its time and client. */
function rowsOf(...exchanges: readonly SeenExchange[]): readonly string[] {
  const lookup: SeenLookup = {
    name: 'api.example.com.',
    candidates: ['api.example.com.'],
    client: '10.244.1.7',
    startMs: START,
    endMs: START + 5,
    exchanges,
  };
  const name = ({ address, port }: { address: string; port: number }): string =>
    `${address}:${port}`;
  return lookupRows(lookup, name, paintFor(false)).split('\n').slice(1);
}

test('a lookup shows the queries that its server sent, and those of their servers, with each translation', () => {
  assert.deepEqual(rowsOf(first), [
    '     asked  by curl[1]',
    '  answered  by node-cache[2] at 169.254.20.10:53',
    '      0 ms  api.example.com.  A 192.0.2.80 5 ms',
    '      1 ms    node-cache[2] asks 10.96.0.11:53 ⇒ 10.244.3.7:53  A 192.0.2.80 3 ms',
    '      2 ms      coredns[3] asks 192.0.2.53:53  A 192.0.2.80 1 ms',
  ]);
});

test('a server in a pod whose name is known has that name', () => {
  const container = { id: 'ab'.repeat(32), runtime: '', podUid: '1-2', pod: 'kube-system/dns-1' };
  const [, named] = rowsOf({ ...first, answerer: { ...cache, container } });
  assert.match(named!, /answered  by abababababab\/node-cache\[2\] in kube-system\/dns-1 at /);
});

test('a server that sent no query answers on its own, and nothing is said if that is not known', () => {
  const [, alone] = rowsOf({ ...first, upstream: [] });
  assert.equal(alone, '  answered  by node-cache[2] at 169.254.20.10:53  no upstream query seen');
  const [, unknown] = rowsOf({ ...first, upstream: null });
  assert.equal(unknown, '  answered  by node-cache[2] at 169.254.20.10:53');
});

test('JSON lists the queries of the server, unless they are unknown', () => {
  const documentOf = (each: SeenExchange): object => exchangeDocument(each, (peer) => peer);
  assert.deepEqual((documentOf(first) as { upstream: unknown }).upstream, [
    {
      server: { address: '10.96.0.11', port: 53 },
      question: { name: 'api.example.com.', type: 'A' },
      rcode: 'NOERROR',
      afterMs: 1,
      latencyMs: 3,
    },
  ]);
  assert.ok(!('upstream' in documentOf({ ...first, upstream: null })));
});

test('a command line of several lines cannot forge a line of output', () => {
  const [shell] = curl.processes;
  const forged = {
    ...shell!,
    command: 'sh\nx',
    commandLine: 'sh -c a\n✓ all.is.well.  A\u001b[2J',
  };
  const details = askerDetails({ ...curl, processes: [forged] });
  assert.equal(details, String.raw`sh -c a ✓ all.is.well.  A\u001b[2J`);
  assert.equal(askerText({ ...curl, processes: [forged] }, paintFor(false)), 'sh x[1]');
});
