/**
 * A busy client that sends a list of questions in turn at a fixed rate, every tenth of them over TCP. Each query uses a
 * new socket with a source port chosen by the kernel. Run it as `node stream-client.ts SERVER RATE NAME/TYPE…`. When
 * its standard input ends, it prints a `StreamReport` as JSON.
 */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { decode, streamEncode, encode, type Packet, type RecordType } from 'dns-packet';

export interface LostQuery {
  /** Milliseconds since the epoch. */
  readonly sentAt: number;
  readonly protocol: 'UDP' | 'TCP';
  readonly question: string;
  /** `timeout`, `ECONNREFUSED`. */
  readonly failure: string;
}

export interface StreamReport {
  readonly sent: number;
  readonly lost: readonly LostQuery[];
  readonly answers: Readonly<Record<string, readonly string[]>>;
  /**
   * The number of SERVFAIL and REFUSED replies, and the last one's arrival in milliseconds since the epoch, or 0 if
   * there were none.
   */
  readonly refused: number;
  readonly lastRefusedAt: number;
  /** The median, the 99th percentile and the maximum, in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
}

/**
 * The client gives up on a server after waiting 100 ms 30 times. Turns are counted, so that a pause in this process
 * only counts once.
 */
const WAIT_TURNS = 30;
const TURN_MS = 100;
/** The maximum number of queries sent at once when the process is late. The rest are skipped to avoid a burst. */
const MOST_AT_ONCE = 10;
const EVERY_NTH_BY_TCP = 10;

const [server = '', rate = '200', ...questions] = process.argv.slice(2);
const lost: LostQuery[] = [];
const answers = new Map<string, Set<string>>();
const times: number[] = [];
let refused = 0;
let lastRefusedAt = 0;
let open = 0;
let asked = 0;
let leftOut = 0;
let ended = false;
const began = performance.now();

function ask(nth: number): void {
  const question = questions[nth % questions.length]!;
  const [name = '', type = 'A'] = question.split('/');
  const tcp = nth % EVERY_NTH_BY_TCP === EVERY_NTH_BY_TCP - 1;
  const packet: Packet = {
    type: 'query',
    id: nth & 0xffff,
    flags: 0x100,
    questions: [{ name, type: type as RecordType }],
  };
  const [sentAt, from] = [Date.now(), performance.now()];
  open++;
  let isOver = false;
  const over = (reply: Buffer | null, failure: string): void => {
    if (isOver) return;
    isOver = true;
    clearInterval(timer);
    open--;
    if (reply === null) lost.push({ sentAt, protocol: tcp ? 'TCP' : 'UDP', question, failure });
    else {
      times.push(performance.now() - from);
      take(question, printed(decode(reply)));
    }
    close();
    report();
  };
  let close: () => void;
  let turns = 0;
  const timer = setInterval(() => {
    if (++turns >= WAIT_TURNS) over(null, 'timeout');
  }, TURN_MS);
  if (tcp) {
    const socket = connect(53, server);
    let received = Buffer.alloc(0);
    close = () => socket.destroy();
    socket.on('error', (error: NodeJS.ErrnoException) => over(null, error.code ?? error.message));
    socket.on('connect', () => socket.write(streamEncode(packet)));
    socket.on('end', () => over(null, 'closed'));
    socket.on('data', (data: Buffer) => {
      received = Buffer.concat([received, data]);
      if (received.length > 2 && received.length >= received.readUInt16BE(0) + 2)
        over(received.subarray(2), '');
    });
  } else {
    const socket = createSocket('udp4');
    close = () => socket.close();
    socket.on('error', (error: NodeJS.ErrnoException) => over(null, error.code ?? error.message));
    socket.on('message', (reply) => over(reply, ''));
    // A connected socket receives an error when a port is closed.
    socket.connect(53, server, () => {
      if (!isOver) socket.send(encode(packet), () => undefined);
    });
  }
}

/** The reply without its variable parts: the ID, TTLs, and record order. */
function printed(packet: Packet): string {
  const { rcode } = packet as Packet & { readonly rcode: string };
  const records = (packet.answers ?? []).map((record) =>
    'data' in record ? `${record.name} ${record.type} ${JSON.stringify(record.data)}` : record.type,
  );
  return [rcode, ...records.toSorted()].join(' | ');
}

function take(question: string, answer: string): void {
  const known = answers.get(question) ?? new Set();
  answers.set(question, known.add(answer));
  if (!/^(SERVFAIL|REFUSED)/.test(answer)) return;
  refused++;
  lastRefusedAt = Date.now();
}

function report(): void {
  if (!ended || open > 0) return;
  times.sort((a, b) => a - b);
  const quantile = (share: number): number => times[Math.floor(share * (times.length - 1))] ?? 0;
  const made: StreamReport = {
    sent: asked,
    lost,
    answers: Object.fromEntries([...answers].map(([question, set]) => [question, [...set]])),
    refused,
    lastRefusedAt,
    p50: quantile(0.5),
    p99: quantile(0.99),
    most: quantile(1),
  };
  process.stdout.write(`${JSON.stringify(made)}\n`, () => process.exit(0));
}

const timer = setInterval(() => {
  // Timers fire late on a busy machine, so missed queries are sent later, within limits.
  const due = Math.floor(((performance.now() - began) / 1000) * Number(rate)) - leftOut;
  leftOut += Math.max(0, due - asked - MOST_AT_ONCE);
  for (let sent = 0; asked < due && sent < MOST_AT_ONCE; sent++) ask(asked++);
}, 5);
process.stdin.on('end', () => {
  ended = true;
  clearInterval(timer);
  report();
});
process.stdin.resume();
process.stdout.write('asking\n');
