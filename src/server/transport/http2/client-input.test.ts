import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ClientInput, type ClientInputHost } from './client-input.ts';
import { makeFrame, wordsFrame } from './client-frames.ts';
import { FLAG, FRAME } from './frames.ts';

interface Told {
  readonly writes: Buffer[];
  readonly violations: string[];
  readonly input: ClientInput;
  readonly clock: { nowMs: number };
}

function make(): Told {
  const writes: Buffer[] = [];
  const violations: string[] = [];
  const socket = { writableLength: 0, write: (bytes: Buffer) => writes.push(bytes) };
  const host: ClientInputHost = {
    get stopped() {
      return violations.length > 0;
    },
    onHeader: () => undefined,
    onBody: () => undefined,
    onReset: () => undefined,
    onSettings: () => undefined,
    onGoAway: () => undefined,
    onWindow: () => undefined,
    onViolation: (what) => void violations.push(what),
  };
  const clock = { nowMs: 0 };
  const input = new ClientInput(socket as never, host, 1 << 24, 1 << 20, () => clock.nowMs);
  return { writes, violations, clock, input };
}

const ping = makeFrame(FRAME.PING, 0, 0, new Uint8Array(8));
const floods: Readonly<Record<string, Buffer>> = {
  PING: ping,
  SETTINGS: makeFrame(FRAME.SETTINGS, 0, 0, new Uint8Array(6)),
  'PING answers': makeFrame(FRAME.PING, FLAG.ACK, 0, new Uint8Array(8)),
  'SETTINGS answers': makeFrame(FRAME.SETTINGS, FLAG.ACK, 0, new Uint8Array()),
  RST_STREAM: wordsFrame(FRAME.RST_STREAM, 0, 1, 8),
  WINDOW_UPDATE: wordsFrame(FRAME.WINDOW_UPDATE, 0, 0, 1),
  GOAWAY: wordsFrame(FRAME.GOAWAY, 0, 0, 0x7fff_ffff, 0),
  'empty DATA': makeFrame(FRAME.DATA, 0, 1, new Uint8Array()),
  'unknown frames': makeFrame(0xbe, 0, 0, new Uint8Array(3)),
};

describe('an HTTP/2 server that floods its client', () => {
  for (const [what, frame] of Object.entries(floods))
    test(`with ${what} is disconnected, and few bytes are queued for it`, () => {
      const told = make();
      const chunk = Buffer.concat(Array.from({ length: 200 }, () => frame));
      let chunks = 0;
      for (; told.violations.length === 0 && chunks < 1000; chunks++) told.input.read(chunk);
      assert.match(told.violations.join(), /is flooding the connection/);
      assert.ok(chunks <= 6, `${chunks} chunks`);
      assert.ok(told.writes.length <= chunks + 1, 'one write for each chunk');
      const last = told.writes.at(-1)!;
      assert.equal(last[3], FRAME.GOAWAY);
      assert.equal(last.readUInt32BE(last.length - 4), 11, 'ENHANCE_YOUR_CALM');
    });

  test('with empty CONTINUATION frames is disconnected', () => {
    const told = make();
    told.input.read(makeFrame(FRAME.HEADERS, 0, 1, new Uint8Array([0x88])));
    const more = makeFrame(FRAME.CONTINUATION, 0, 1, new Uint8Array());
    const chunk = Buffer.concat(Array.from({ length: 200 }, () => more));
    for (let chunks = 0; told.violations.length === 0 && chunks < 6; chunks++)
      told.input.read(chunk);
    assert.equal(told.violations.length, 1);
  });
});

test('an HTTP/2 server that sends a PING with each piece of data, or ten per second, stays connected', () => {
  const told = make();
  const data = makeFrame(FRAME.DATA, 0, 1, new Uint8Array(10));
  for (let i = 0; i < 20_000; i++) told.input.read(Buffer.concat([data, ping, ping]));
  for (let i = 0; i < 20_000; i++) {
    told.clock.nowMs += 100;
    told.input.read(ping);
  }
  assert.deepEqual(told.violations, []);
});
