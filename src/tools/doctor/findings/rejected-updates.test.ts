import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG, OPCODE, RCODE } from '../../../server/wire/iana.ts';
import { parseName } from '../../../server/wire/name.ts';
import { writeTsig } from '../../../server/wire/tsig.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { back, dnsMessage, udpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const SERVER = '192.0.2.53';
const [zone, name] = ['ext.example.net.', 'app.ext.example.net.'];
const UPDATE_FLAGS = OPCODE.UPDATE << 11;
/** The seconds by which the client's clock is behind. */
const BEHIND = 1500;

function signed(message: Uint8Array, signedAt: number, error = 0, now = signedAt): Uint8Array {
  const out = new Uint8Array(message.length + 500);
  out.set(message);
  const other =
    error === RCODE.BADTIME
      ? Uint8Array.from({ length: 6 }, (_, nth) => Math.floor(now / 256 ** (5 - nth)) % 256)
      : new Uint8Array(0);
  const fields = {
    ...{ key: parseName('extdns.'), algorithm: parseName('hmac-sha256.'), signedAt, fudge: 300 },
    ...{ mac: new Uint8Array(error === 0 ? 32 : 0), originalId: 1, error, other },
  };
  return out.subarray(0, writeTsig(fields, out, 0, message.length));
}

/** Updates that get NOTAUTH, with this error in the TSIG record. */
const updates = (error: number): Captured[] =>
  Array.from({ length: 5 }, (_, nth) => {
    const way = ends('10.244.1.9', 30_000 + nth, SERVER);
    const atMs = nth * 1500;
    const now = Math.floor(at(atMs, new Uint8Array(0)).timeMs / 1000);
    const message = (more: object): Uint8Array =>
      dnsMessage(zone, 'SOA', { id: nth + 1, flags: UPDATE_FLAGS, ...more });
    const query = signed(message({}), now - BEHIND);
    const rejected = message({ flags: UPDATE_FLAGS | FLAG.QR, rcode: RCODE.NOTAUTH });
    const reply = signed(rejected, now - BEHIND, error, now);
    return [at(atMs, udpPacket(way, query)), at(atMs + 1, udpPacket(back(way), reply))];
  }).flat();

const missing: Given[] = Array.from({ length: 5 }, (_, nth) => ({
  ...{ atMs: nth * 2000, name, server: SERVER },
  reply: { rcode: RCODE.NXDOMAIN, authority: [soa(zone)] },
}));

test('updates that a server rejects because the clocks differ are distinguished from other errors', async () => {
  const { findings } = await examine(
    inOrder([given([...others(30), ...missing]), updates(RCODE.BADTIME)]),
  );
  const [first, ...rest] = findings.filter(({ severity }) => severity !== 'info');
  assert.match(first!.title, /dynamic updates because the clocks differ \(TSIG BADTIME\)/);
  assert.match(first!.seen.join(' '), /clock is 1500 s behind, and 300 s are allowed/);
  assert.match(first!.seen.join(' '), /so the client’s clock is probably wrong/);
  assert.match(first!.seen.join(' '), /app\.ext\.example\.net\./);
  assert.deepEqual(rest, []);
  const [badKey] = (await examine(updates(RCODE.BADKEY))).findings;
  assert.match(badKey!.title, /TSIG BADKEY/);
});
