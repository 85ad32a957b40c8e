/**
 * Fuzzes the codec: `node test/fuzz/wire.ts [--count N] [--seconds N] [--seed N]`. Damages the messages in `corpus/`
 * and passes them to all parsers of external bytes. The guarantees:
 *
 * - only a ReadError (Problem, NameError for text) is thrown.
 * - accepted input can be written, printed, stamped and moved, and the result is accepted again.
 * - Query.read and readMessage agree on complete messages.
 * - no input takes this thread more than a second of CPU time, and memory stays constant.
 *
 * At the first violation it exits with status 1, and prints the seed and the input's number and hex. A release's long
 * run has five million inputs.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { Problem } from '../../src/server/base/problem.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import { classify, hasExpiredSignature } from '../../src/server/wire/classify.ts';
import { printHex } from '../../src/server/wire/encoding.ts';
import { FLAG, HEADER, RCODE, TYPE } from '../../src/server/wire/iana.ts';
import { readMessage, writeMessage, type Message } from '../../src/server/wire/message.ts';
import { NameError, nameLength, parseName, printName } from '../../src/server/wire/name.ts';
import { printMessage } from '../../src/server/wire/print.ts';
import { makeQuery, Query } from '../../src/server/transport/query.ts';
import { ReadError } from '../../src/server/wire/reader.ts';
import { Records } from '../../src/server/wire/records.ts';
import { withQuestion } from '../../src/server/wire/requestion.ts';
import { failure, type Reply } from '../../src/server/wire/reply.ts';
import { stamp, STAMP_ROOM } from '../../src/server/wire/stamp.ts';
import { answersQuery, fromUpstream } from '../../src/server/wire/upstream.ts';
import { MessageFull } from '../../src/server/wire/writer.ts';
import { parseZone } from '../../src/server/wire/zone-text.ts';
import { settledMemory } from '../kit/settled-memory.ts';
import { ttlOffsets } from '../kit/ttl-offsets.ts';
import { checkGrowth, runFuzzer } from './campaign.ts';
import { mutate } from './mutate.ts';
import { lower } from './spelling.ts';

export interface FuzzReport {
  readonly inputs: number;
  /** The numbers of complete messages, valid queries, and usable replies. */
  readonly messages: number;
  readonly queries: number;
  readonly replies: number;
  readonly seconds: number;
  /** The CPU time of the slowest input. */
  readonly slowestMs: number;
  /** The growth in memory use from the first tenth of the run to its end. */
  readonly grownBytes: number;
}

/** An input that broke a guarantee. The error message includes everything needed to reproduce it. */
class Broken extends Error {
  override readonly name = 'Broken';

  constructor(seed: number, index: number, input: Uint8Array, cause: unknown) {
    super(
      `${String(cause)}\nseed: ${seed}, input ${index} (node test/fuzz/wire.ts --seed ${seed} --count ${index + 1}): ${printHex(input)}`,
      { cause },
    );
  }
}

/** In a long run, a leak exceeds this. */
const GROWTH_MAX = 100 * 2 ** 20;
/** Measured in CPU time, which other programs on the machine do not affect. */
const INPUT_MS_MAX = 1000;

const out = new Uint8Array(70_000 + STAMP_ROOM);
const query = new Query();
const longName = makeQuery(parseName(`${'x'.repeat(60)}.search.default.svc.cluster.local`), 1);
const records = new Records();
const seen = { messages: 0, queries: 0, replies: 0 };

/**
 * Runs until `count` inputs or `seconds` have passed.
 * @throws Broken
 */
export async function fuzzWire(seed: number, count: number, seconds: number): Promise<FuzzReport> {
  const directory = new URL('corpus/', import.meta.url);
  const files = readdirSync(directory).toSorted();
  const corpus = files.map((file) => new Uint8Array(readFileSync(new URL(file, directory))));
  for (const bytes of corpus) watched(seed, 0, bytes);
  const random = seededRandom(seed);
  const begin = performance.now();
  const until = begin + seconds * 1000;
  let slowestMs = 0;
  let inputs = 0;
  let early: number | null = null;
  for (let now = begin; inputs < count && now < until; inputs++) {
    slowestMs = Math.max(slowestMs, watched(seed, inputs, mutate(corpus, random)));
    now = performance.now();
    if (early === null && (inputs * 10 >= count || (now - begin) * 10 >= seconds * 1000))
      early = await settledMemory();
  }
  const grownBytes = await checkGrowth(early, GROWTH_MAX);
  return { inputs, ...seen, seconds: (performance.now() - begin) / 1000, slowestMs, grownBytes };
}

/**
 * @returns the CPU time of the input in this thread, in milliseconds
 * @throws Broken
 */
function watched(seed: number, index: number, bytes: Uint8Array): number {
  const before = process.threadCpuUsage();
  try {
    check(bytes, index);
    const { user, system } = process.threadCpuUsage(before);
    const ms = (user + system) / 1000;
    if (ms > INPUT_MS_MAX) throw new Error(`one input took ${Math.round(ms)} ms`);
    return ms;
  } catch (error) {
    throw new Broken(seed, index, bytes, error);
  }
}

/** Passes an input through all parsers and writers. `index` determines which inputs also get the expensive checks. */
function check(bytes: Uint8Array, index: number): void {
  const message = readOrNull(bytes);
  if (message !== null) {
    seen.messages++;
    if (index % 8 === 0) checkMessage(message);
  }
  checkQuery(bytes, message);
  const reply = fromUpstream(bytes);
  if (reply instanceof ReadError) {
    if (message !== null && message.question.length === 1 && (message.flags & FLAG.QR) !== 0) {
      // Moved records may need more room than before. All other readable input must be accepted.
      if (!/longer than 65535/.test(reply.message))
        throw new Error('a readable reply was refused', { cause: reply });
    }
  } else {
    seen.replies++;
    checkReply(reply);
  }
  if (index % 16 === 0) checkText(bytes);
}

function readOrNull(bytes: Uint8Array): Message | null {
  try {
    return readMessage(bytes);
  } catch (error) {
    if (!(error instanceof ReadError)) throw error;
    if (error.offset < 0 || error.offset > bytes.length)
      throw new Error(`offset ${error.offset}`, { cause: error });
    return null;
  }
}

function checkMessage(message: Message): void {
  printMessage(message);
  let written;
  try {
    written = writeMessage(message);
  } catch (error) {
    // Compressed names may become too long when they are written in full, as some types require.
    if (error instanceof MessageFull) return;
    throw error;
  }
  const again = JSON.stringify(lower(readMessage(written)));
  if (again !== JSON.stringify(lower(message)))
    throw new Error(`written and read again it is another message: ${again}`);
}

function hasTsig({ answer, authority, additional }: Message): boolean {
  return [...answer, ...authority, ...additional].some(({ type }) => type === TYPE.TSIG);
}

function checkQuery(bytes: Uint8Array, message: Message | null): void {
  const triage = query.read(bytes, 0, bytes.length);
  const judged = triage === 'serve' || triage === 'formerr';
  const within =
    bytes.length >= 12 &&
    u16(bytes, 4) === 1 &&
    u16(bytes, 6) <= 1 &&
    u16(bytes, 8) <= 1 &&
    u16(bytes, 10) <= 2;
  // Only the names are read in records other than OPT; the rest of their data may be anything.
  const others = u16(bytes, 6) + u16(bytes, 8) + u16(bytes, 10) > (query.edns ? 1 : 0);
  const lenient = triage === 'serve' && others;
  // A TSIG record that is not the last one makes a query invalid (RFC 8945), although the message is readable.
  const signed = triage === 'formerr' && message !== null && hasTsig(message);
  if (judged && within && !lenient && !signed && (triage === 'serve') !== (message !== null)) {
    throw new Error(
      `Query.read says ${triage}, readMessage ${message === null ? 'refuses' : 'reads'}`,
    );
  }
  if (triage !== 'serve') return;
  seen.queries++;
  checkStamped(failure(RCODE.SERVFAIL, 'fuzz'), query);
  if (query.keep().name !== query.name) throw new Error('a kept query has another name');
}

function checkReply(reply: Reply): void {
  if (reply.bare) return;
  const { bytes, start, end } = reply;
  let count = 0;
  for (records.of(reply); records.next();) count++;
  if (count !== reply.answers + reply.authority + reply.additional)
    throw new Error(`${count} records were walked`);
  classify(reply, 1);
  hasExpiredSignature(reply, 1_700_000_000);
  const ttlAt = ttlOffsets(bytes, start, end);
  if (ttlAt.length !== count) throw new Error(`${ttlAt.length} TTLs of ${count} records`);
  reply = reply.with({ ttlAt, ttl: 5 });
  const asked = queryFor(reply);
  asked.proto = count % 2 === 0 ? 'udp' : 'tcp';
  checkStamped(reply, asked);
  for (const moved of [
    withQuestion(reply, longName, 'follow'),
    withQuestion(reply, longName, 'stay', 30),
  ]) {
    if (!answersQuery(moved, longName)) throw new Error('a moved reply has another question');
    const again = fromUpstream(moved.bytes, moved.start, moved.end);
    if (again instanceof ReadError) throw new Error('a moved reply is refused', { cause: again });
    checkStamped(moved, longName);
  }
}

function checkStamped(reply: Reply, asked: Query): void {
  const length = stamp(reply, asked, out, 0);
  if (length > asked.limit)
    throw new Error(`${length} bytes were stamped, ${asked.limit} are allowed`);
  const again = fromUpstream(out, 0, length);
  if (again instanceof ReadError) throw new Error('a stamped reply is refused', { cause: again });
}

function checkText(bytes: Uint8Array): void {
  const text = String.fromCharCode(...bytes.subarray(0, 400));
  try {
    for (const record of parseZone(text, { file: 'fuzz', ttl: 1 }))
      printName(parseName(record.name));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
  try {
    parseName(text);
  } catch (error) {
    if (!(error instanceof NameError)) throw error;
  }
}

/** A query with exactly the reply's question. */
function queryFor(reply: Reply): Query {
  const at = reply.start + HEADER.SIZE;
  const name = reply.bytes.subarray(at, at + nameLength(reply.bytes, at));
  const after = at + name.length;
  return makeQuery(name, u16(reply.bytes, after), u16(reply.bytes, after + 2));
}

function u16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

if (import.meta.main) await runFuzzer(fuzzWire);
