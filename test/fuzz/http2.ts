/**
 * Fuzzes the HTTP/2 server: `node test/fuzz/http2.ts [--count N] [--seconds N] [--seed N]`. Each connection sends
 * requests among frames of any type, with changed flags, streams and bytes. The guarantees:
 *
 * - no frame ends the process, and no connection stops another one from being answered.
 * - a connection ends when its client ends, and memory stays bounded.
 *
 * At the first violation it exits with status 1, and prints the seed and the connection's number.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { httpsListener } from '../../src/server/transport/https/https.ts';
import { FLAG, FRAME, SETTING } from '../../src/server/transport/http2/frames.ts';
import { testTls } from '../kit/certificate.ts';
import { frame, Http2Client, literals, preface, requestFields } from '../kit/http2-client.ts';
import { answerOne, listenerParts, queryBytes } from '../kit/loopback.ts';
import { pick } from '../kit/pick.ts';
import { settledMemory } from '../kit/settled-memory.ts';
import { checkGrowth, runFuzzer } from './campaign.ts';
import { damage } from './mutate.ts';

export interface Http2FuzzReport {
  connections: number;
  frames: number;
  /** Replies to requests among the frames. */
  replies: number;
}

/** After this many connections, a well-behaved client sends a request. */
const CHECK_EVERY = 20;
const REPLY_MS = 5000;
/** The time for a client to read replies, in milliseconds. Others end at once. */
const READ_MS = 5;
const GROWTH_MAX = 100 * 2 ** 20;
/** Memory is measured from this connection on. */
const WARM_UP = 100;
const FRAMES_MAX = 20;
const whole = FLAG.END_HEADERS | FLAG.END_STREAM;

/**
 * Runs until `count` connections or `seconds` have passed.
 * @throws an error that names the seed and the connection's number
 */
export async function fuzzHttp2(
  seed: number,
  count: number,
  seconds: number,
): Promise<Http2FuzzReport> {
  const random = seededRandom(seed);
  const listener = httpsListener(listenerParts(answerOne, { scheme: 'https' }, {}, testTls));
  await listener.open();
  const report = { connections: 0, frames: 0, replies: 0 };
  const until = performance.now() + seconds * 1000;
  let early: number | null = null;
  try {
    for (; report.connections < count && performance.now() < until; report.connections++) {
      await attack(listener.port, random, report);
      if (report.connections % CHECK_EVERY === 0) await ask(listener.port);
      if (report.connections === WARM_UP) early = await settledMemory();
    }
    await ask(listener.port);
    await checkGrowth(early, GROWTH_MAX);
  } catch (error) {
    throw new Error(`seed ${seed}, connection ${report.connections}`, { cause: error });
  } finally {
    await listener.close(0);
  }
  return report;
}

async function attack(port: number, random: Random, report: Http2FuzzReport): Promise<void> {
  const frames = Array.from({ length: random.integer(FRAMES_MAX) }, (_, index) =>
    anyFrame(1 + 2 * index, random),
  );
  report.frames += frames.length;
  const whole = Buffer.concat([preface, frame(FRAME.SETTINGS, 0, 0), ...frames]);
  const bytes =
    random.integer(3) === 0 ? Uint8Array.from(damage([...whole], [whole], random)) : whole;
  const client = await Http2Client.connect(port);
  try {
    client.socket.write(bytes);
    if (random.integer(2) === 0)
      while ((await client.next([FRAME.DATA], READ_MS)) !== null) report.replies++;
    client.socket.end();
    // The server ends its side, too.
    if (!client.socket.destroyed)
      await once(client.socket.resume(), 'close', { signal: AbortSignal.timeout(REPLY_MS) });
  } finally {
    client.close();
  }
}

/** Sends a correct request, and checks that it is answered. */
async function ask(port: number): Promise<void> {
  const client = await Http2Client.open(port);
  client.send(get(1));
  const data = await client.next([FRAME.DATA], REPLY_MS);
  client.close();
  assert.equal(data?.payload.readUInt16BE(6), 1);
}

/** @param at the stream that the next request should have */
function anyFrame(at: number, random: Random): Buffer {
  const id = random.integer(16) === 0 ? random.integer(2 ** 31) : at;
  // Most frames are correct requests, since the first wrong one ends the connection.
  if (random.integer(3) > 0) return get(id);
  switch (random.integer(8)) {
    case 0:
      return get(id, random.integer(256));
    case 1:
      return frame(
        FRAME.HEADERS,
        random.integer(4) === 0 ? random.integer(256) : FLAG.END_HEADERS,
        id,
        literals(requestFields('POST', '/dns-query', anyFields(random))),
      );
    case 2:
      return frame(FRAME.DATA, random.integer(2), id, queryBytes('a.', 0));
    case 3:
      return frame(FRAME.SETTINGS, random.integer(2), 0, anySettings(random));
    case 4:
      return frame(FRAME.WINDOW_UPDATE, 0, random.integer(2) * id, anyBytes(4, random));
    case 5:
      return frame(FRAME.RST_STREAM, 0, id, anyBytes(4, random));
    default:
      return frame(
        random.integer(12),
        random.integer(256),
        random.integer(2) * id,
        anyBytes(random.integer(300), random),
      );
  }
}

function get(id: number, flags: number = whole): Buffer {
  const path = `/dns-query?dns=${queryBytes('a.', 0).toString('base64url')}`;
  return frame(FRAME.HEADERS, flags, id, literals(requestFields('GET', path)));
}

function anyFields(random: Random): readonly (readonly [string, string])[] {
  const values = ['', '0', '1', '40', '-1', '99999999999', 'x'.repeat(random.integer(5000))];
  const names = ['content-length', 'content-type', 'te', 'x', ':path', 'Upper', 'connection'];
  return Array.from(
    { length: random.integer(4) },
    () => [pick(random, names), pick(random, values)] as const,
  );
}

function anySettings(random: Random): Buffer {
  const names = [...Object.values(SETTING), 1, random.integer(0x10000)];
  return Buffer.concat(
    Array.from({ length: random.integer(4) }, () => {
      const setting = anyBytes(6, random);
      setting.writeUInt16BE(pick(random, names), 0);
      return setting;
    }),
  );
}

function anyBytes(length: number, random: Random): Buffer {
  return Buffer.from(Array.from({ length }, () => random.integer(256)));
}

if (import.meta.main) await runFuzzer(fuzzHttp2);
