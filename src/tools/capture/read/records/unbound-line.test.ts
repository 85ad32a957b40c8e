import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Remarks } from '../packets/remarks.ts';
import type { SeenExchange } from '../../pair/seen-exchange.ts';
import { QueryLogReader, type LoggedFailure } from './query-log.ts';

function read(text: string): {
  exchanges: SeenExchange[];
  failures: LoggedFailure[];
  remarks: Remarks;
} {
  const found = { exchanges: [] as SeenExchange[], failures: [] as LoggedFailure[] };
  const remarks = new Remarks();
  const reader = new QueryLogReader(
    {
      exchange: (exchange) => void found.exchanges.push(exchange),
      failure: (failure) => void found.failures.push(failure),
      other: () => undefined,
      entry: () => undefined,
    },
    remarks,
  );
  reader.push(Buffer.from(text));
  reader.end();
  return { ...found, remarks };
}

test('a reply in Unbound’s log is an exchange, with and without its tag and destination', () => {
  const { exchanges } = read(
    [
      '[1732875543] unbound[12:0] info: 10.244.1.5 www.Example.com. A IN NOERROR 0.250000 0 67',
      '[1732875544] unbound[12:1] reply: 10.244.1.6 gone.example.com. AAAA IN NXDOMAIN 0.000000 1 101 udp 10.96.0.10 53',
      'Nov 29 10:00:00 node7 unbound[812]: [812:0] info: fd00::5 big.example.com. TXT IN SERVFAIL 2.000000 0 40',
    ].join('\n'),
  );
  assert.deepEqual(
    exchanges.map(({ client, name, type, rcode, sentMs, logged }) => [
      ...[client.address, name, type, rcode, logged === 'with times' ? sentMs : null],
    ]),
    [
      ['10.244.1.5', 'www.example.com.', 1, 0, 1_732_875_542_750],
      ['10.244.1.6', 'gone.example.com.', 28, 3, 1_732_875_544_000],
      ['fd00::5', 'big.example.com.', 16, 2, null],
    ],
  );
});

test('log-servfail says why', () => {
  const { failures } = read(
    '[1732875543] unbound[12:0] error: SERVFAIL <big.example.com. A IN>: all servers for this domain failed, at zone example.com. from 192.0.2.1 got SERVFAIL\n',
  );
  assert.equal(failures[0]?.name, 'big.example.com.');
  assert.match(failures[0].text, /all servers for this domain failed/);
});

test('queries without replies are not exchanges, and a remark names the option', () => {
  const { exchanges, remarks } = read(
    '[1732875543] unbound[12:0] info: 10.244.1.5 a.example. A IN\n',
  );
  assert.equal(exchanges.length, 0);
  assert.equal(remarks.count('Unbound logs only queries (to log replies: log-replies: yes)'), 1);
});

test('log-queries beside log-replies counts each query once, without a remark', () => {
  const { exchanges, remarks } = read(
    [
      '[1795963374] unbound[915:0] query: 127.0.0.1 www.example.test. A IN',
      '[1795963374] unbound[915:0] reply: 127.0.0.1 www.example.test. A IN NOERROR 0.000000 1 61',
    ].join('\n'),
  );
  assert.equal(exchanges.length, 1);
  assert.equal(remarks.count('Unbound logs only queries (to log replies: log-replies: yes)'), 0);
});
