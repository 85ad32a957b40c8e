import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addressRecord, dnsMessage } from '../../../../test/kit/packets.ts';
import { seededRandom } from '../../../server/base/random.ts';
import { OPTION, TYPE } from '../../../server/wire/iana.ts';
import type { Message } from '../../../server/wire/message.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { madeExchange } from '../../capture/read/records/made-exchange.ts';
import { replyShape } from './reply-shape.ts';

const NAME = 'www.example.com.';

/** An exchange with these bytes as its reply. */
function answeredBy(reply: Uint8Array): SeenExchange {
  const made = madeExchange({
    client: { address: '10.0.0.1', port: 4000 },
    server: { address: '10.0.0.10', port: 53 },
    ...{ protocol: 'udp', id: 1, name: NAME, type: TYPE.A, class: 1, udpSize: 1232 },
    ...{ sentMs: 0, repliedMs: 5, rcode: reply[3]! & 15, flags: 0x8180, line: 1 },
  });
  const query = dnsMessage(NAME, 'A');
  return {
    ...made,
    logged: undefined,
    query,
    reply,
    replyBytes: reply.length,
    cookie: true,
  } as never;
}

const replyOf = (more: Partial<Message>): Uint8Array =>
  dnsMessage(NAME, 'A', { reply: true, ...more });

const alias = (name: string, target: string): Message['answer'][number] => ({
  ...{ name, type: TYPE.CNAME, class: 1, ttl: 30, data: { target } },
});

const whole = replyOf({
  answer: [alias(NAME, 'edge.example.net.'), addressRecord('edge.example.net.', '192.0.2.1')],
  edns: {
    ...{ udpSize: 1232, version: 0, dnssecOk: false },
    options: [
      { code: OPTION.EDE, data: Uint8Array.from([0, 7, 0x6f, 0x6c, 0x64]) },
      { code: OPTION.COOKIE, data: new Uint8Array(8) },
    ],
  },
});

describe('what is in a reply', () => {
  test('a whole reply has no fault, and its reason and alias are read', () => {
    const shape = replyShape(answeredBy(whole))!;
    assert.deepEqual(
      [shape.fault, shape.reason, shape.reasonText, shape.target],
      [null, 7, 'old', 'edge.example.net.'],
    );
  });

  test('a reply that is cut anywhere behind its question is cut', () => {
    for (let end = 12 + NAME.length + 1 + 4; end < whole.length; end++)
      assert.equal(replyShape(answeredBy(whole.subarray(0, end)))?.fault, 'cut', `${end} bytes`);
  });

  test('aliases that lead to each other are a loop', () => {
    const loop = replyOf({ answer: [alias(NAME, 'b.example.'), alias('b.example.', NAME)] });
    assert.equal(replyShape(answeredBy(loop))?.fault, 'loop');
  });

  test('no bytes make reading fail', () => {
    const random = seededRandom(7);
    for (let run = 0; run < 5000; run++) {
      const bytes = Uint8Array.from(whole);
      for (let flips = 1 + random.integer(6); flips > 0; flips--)
        bytes[random.integer(bytes.length)] = random.integer(256);
      replyShape(answeredBy(bytes.subarray(0, random.integer(bytes.length + 1))));
    }
  });
});
