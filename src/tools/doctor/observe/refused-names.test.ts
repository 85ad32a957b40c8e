import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE, TYPE } from '../../../server/wire/iana.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { madeExchange } from '../../capture/read/records/made-exchange.ts';
import { RefusedNames } from './refused-names.ts';

const NAME = 'hooks.example.com.';

function exchange(client: string, sentMs: number, rcode = 0): SeenExchange {
  return madeExchange({
    client: { address: client, port: 4000 },
    server: { address: '10.96.0.10', port: 53 },
    ...{ protocol: 'udp', id: 1, name: NAME, type: TYPE.A, class: 1, udpSize: 512 },
    ...{ sentMs, repliedMs: sentMs + 1, rcode, flags: 0, line: 1 },
  });
}

function clientsOf(...exchanges: readonly SeenExchange[]): RefusedNames {
  const names = new RefusedNames();
  for (const each of exchanges) names.add(each);
  return names;
}

test('another client’s answers count whether its lookups are read before or after the refusals', () => {
  const refused = exchange('10.244.1.1', 100, RCODE.REFUSED);
  const answered = exchange('10.244.1.2', 200);
  for (const order of [
    [refused, answered],
    [answered, refused],
  ])
    assert.deepEqual(
      clientsOf(...order)
        .of(TYPE.A, NAME)
        .toSorted((one, other) => other.refused - one.refused),
      [
        { client: '10.244.1.1', refused: 1, isAnswered: false },
        { client: '10.244.1.2', refused: 0, isAnswered: true },
      ],
    );
});

test('answers from before the first refusal do not count', () => {
  const names = clientsOf(
    exchange('10.244.1.1', 100),
    exchange('10.244.1.2', 150),
    exchange('10.244.1.1', 200, RCODE.REFUSED),
  );
  assert.deepEqual(names.of(TYPE.A, NAME), [
    { client: '10.244.1.1', refused: 1, isAnswered: false },
  ]);
  assert.equal(names.all.length, 1);
});
