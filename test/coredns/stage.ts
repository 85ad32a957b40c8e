import { every, systemClock, type Clock } from '../../src/server/base/clock.ts';
import { parseAddress } from '../../src/server/base/ip.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import type { Sender } from '../../src/server/engine/embedded.ts';
import { FLAG } from '../../src/server/wire/iana.ts';
import { readMessage, writeMessage } from '../../src/server/wire/message.ts';
import type { Query } from '../../src/server/transport/query.ts';
import { failure } from '../../src/server/wire/reply.ts';
import { scriptedNetwork, type Answer, type Asked } from '../kit/upstream.ts';
import { compare, expectedOf, optionsOf, plainLog } from './compare.ts';
import type { ServeEvent, Written } from './events.ts';
import { given, neighbour, questionOf, recordedReply, type Later } from './neighbour.ts';
import { corefileServer, type CorefileServer } from './server.ts';

/** The milliseconds added between two instants on a test's clock, so that background work finishes in between. */
const INSTANT = 1;

/** A server for one state of a handler. It receives a test's queries, and its neighbours return the test's replies. */
export class Stage {
  readonly corefile: string;
  readonly #server: CorefileServer;
  /** Null means real time, because objects are read from files. */
  readonly #virtual: VirtualClock | null;
  readonly #begin: number;
  #last = 0;
  #instants = 0;
  #batch: readonly ServeEvent[] = [];
  /** The neighbours' exchanges that have not happened yet. */
  #open: Written[] = [];
  readonly #earlier: Written[] = [];
  readonly #heard = new Set<Written>();
  #unexpected: string[] = [];

  /** @param all the handler's exchanges in order, from which all of its objects are taken */
  static async open(
    corefile: string,
    event: ServeEvent,
    all: readonly ServeEvent[],
  ): Promise<Stage> {
    const stage = new Stage(corefile, event, all);
    const started = stage.#server.embedded.start();
    await (stage.#virtual?.run(started) ?? started);
    return stage;
  }

  private constructor(corefile: string, { plugin, state }: ServeEvent, all: readonly ServeEvent[]) {
    this.corefile = corefile;
    const real = plugin === 'kubernetes';
    this.#virtual = real ? null : new VirtualClock(all[0]!.state.now);
    this.#begin = timeOf(all[0]!);
    const clock: Clock = this.#virtual ?? systemClock;
    const source =
      state.unsynced === true
        ? 'endpoint http://127.0.0.1:1\nstartup_timeout 10ms'
        : 'manifests {FOLDER}';
    this.#server = corefileServer(
      corefile.replace('{SOURCE}', source),
      { ...state.files, ...(real && { 'objects.json': listOf(all) }) },
      clock,
      scriptedNetwork(clock, (asked) => this.#upstream(asked)),
      [
        given(() => this.#batch[0]?.state.metadata ?? {}),
        neighbour((query) => this.#answer(query), clock),
      ],
    );
  }

  /** True if the event's time has not yet been reached here. */
  reaches(event: ServeEvent): boolean {
    return this.#virtual === null || timeOf(event) >= this.#last - 1000;
  }

  /**
   * Replays concurrent exchanges.
   * @returns the differences in each
   */
  async ask(batch: readonly ServeEvent[]): Promise<string[][]> {
    await this.#letTimePass(timeOf(batch[0]!));
    this.#batch = batch;
    this.#open = batch.flatMap(({ next }) => next ?? []);
    this.#unexpected = [];
    const { embedded, log } = this.#server;
    const lines = log.length;
    const { server } = embedded.open[0]!;
    const exchanges = Promise.all(
      batch.map((event) => embedded.exchange(queryOf(event), senderOf(event), server)),
    );
    // Other threads sign at the same time.
    const signs = batch[0]!.plugin === 'dnssec' && this.#virtual !== null;
    const ticks = signs ? every(this.#virtual!, 1, () => undefined) : null;
    const replies = await (this.#virtual?.run(exchanges) ?? exchanges);
    ticks?.cancel();
    await this.#virtual?.advance(0);
    this.#earlier.push(...batch.flatMap(({ next }) => next ?? []));
    return batch.map((event, nth) => {
      const bytes = replies[nth]!;
      const differences = compare(expectedOf(event), bytes === null ? null : readMessage(bytes));
      if (event.plugin === 'log' || event.plugin === 'errors') {
        const mine = plainLog(log.slice(lines));
        const theirs = plainLog((event.log ?? '').split('\n').filter((line) => line !== ''));
        if (mine !== theirs) differences.push(`log ${mine} instead of ${theirs}`);
      }
      return [...differences, ...this.#unexpected];
    });
  }

  async close(): Promise<void> {
    const closed = Promise.resolve(this.#server[Symbol.asyncDispose]());
    await (this.#virtual?.run(closed) ?? closed);
  }

  async #letTimePass(until: number): Promise<void> {
    if (until > this.#last) this.#instants++;
    this.#last = until;
    const clock = this.#virtual;
    const wait = until - this.#begin + INSTANT * this.#instants - (clock?.now() ?? 0);
    await clock?.advance(Math.max(0, wait));
  }

  /** A neighbour's reply in the test, or the equivalent. */
  #answer(query: Query): Later {
    const isIt = (written: Written): boolean => {
      const { name, type, class: qclass } = questionOf(written.query);
      return name.toLowerCase() === query.name && type === query.type && qclass === query.class;
    };
    const at = this.#open.findIndex(isIt);
    const now = this.#batch.flatMap(({ next }) => next ?? []);
    const found = this.#open[at] ?? now.findLast(isIt) ?? this.#earlier.findLast(isIt);
    if (at >= 0) this.#open.splice(at, 1);
    if (found === undefined) {
      this.#unexpected.push(`${query.name} ${query.type} is asked for`);
      return { reply: failure(2, 'neighbour', new Error('unexpected query')), took: 0 };
    }
    this.#compareOptions(query, found);
    const outlives = this.#batch.some(
      (event) => (event.next ?? []).includes(found) && (found.took ?? 0) > (event.took ?? 0),
    );
    const took = (found.took ?? 0) > 5 ? found.took! : 0;
    return {
      reply: recordedReply(query, found, this.corefile.includes('serve_stale')),
      // Background work finishes after everything else in the same instant.
      took: outlives ? took + INSTANT / 2 : took,
    };
  }

  /** An upstream's reaction in the test. Upstreams without any recorded queries are unreachable. */
  #upstream({ to, name, type, query }: Asked): Answer {
    const port = to.split(':').at(-1);
    const heard = this.#batch.flatMap(({ upstreams }) => upstreams ?? []);
    const here = heard.filter(({ plugin }) => plugin.split(':').at(-1) === port);
    const isIt = (written: Written): boolean => {
      const question = questionOf(written.query);
      return question.name.toLowerCase() === name && question.type === type;
    };
    const found = here.find((one) => isIt(one) && !this.#heard.has(one)) ?? here.findLast(isIt);
    if (found === undefined) return here.length > 0 || name === '.' ? {} : { fail: 'refused' };
    this.#heard.add(found);
    const last = found.replies?.at(-1);
    if (last === undefined || last === null) return { fail: 'timeout' };
    const bytes = Buffer.from(last, 'base64');
    bytes.writeUInt16BE(query.id);
    return { bytes, afterMs: Math.max(1, found.took ?? 0) };
  }

  #compareOptions(query: Query, found: Written): void {
    if (this.#batch[0]?.plugin !== 'rewrite') return;
    const theirs = optionsOf(readMessage(Buffer.from(found.query!, 'base64')));
    const mine = query.edns ? optionsOf(readMessage(query.bytes, query.start, query.end)) : '';
    if (mine !== theirs) this.#unexpected.push(`options ${mine} go on instead of ${theirs}`);
  }
}

/** An exchange's time on the plugin's clock, or 0 if it has none. */
export function timeOf(event: ServeEvent): number {
  return event.state.now ?? 0;
}

/** A List of all objects. Each test only includes those that its queries may concern. */
function listOf(events: readonly ServeEvent[]): string {
  const items = new Map<string, object>();
  for (const { state } of events)
    for (const object of state.objects ?? []) {
      const { kind, metadata } = object;
      items.set(`${kind} ${metadata.namespace ?? ''} ${metadata.name}`, object);
    }
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...items.values()] });
}

/** The test's query in a form that a client could send. */
function queryOf(event: ServeEvent): Uint8Array {
  const message = readMessage(Buffer.from(event.query!, 'base64'));
  const { message: reply, rcode } = expectedOf(event);
  // Only clients with EDNS can see options and large response codes.
  const speaks = rcode > 15 || (reply?.edns?.options.length ?? 0) > 0;
  return writeMessage({
    ...message,
    flags: message.flags & ~FLAG.QR,
    rcode: 0,
    question: [questionOf(event.query)],
    edns:
      message.edns ?? (speaks ? { udpSize: 4096, version: 0, dnssecOk: false, options: [] } : null),
    answer: [],
    authority: [],
    additional: [],
  });
}

function senderOf({ remote, replies }: ServeEvent): Sender {
  const [, network = 'udp', host = '', port = '40212'] =
    /^(\w+) \[?([^\]%]*)[^\]]*\]?:(\d+)$/.exec(remote) ?? [];
  const long = (replies ?? []).some((reply) => Buffer.from(reply, 'base64').length > 512);
  return {
    proto: network === 'tcp' || long ? 'tcp' : 'udp',
    address: parseAddress(host) ?? Uint8Array.of(10, 240, 0, 1),
    port: Number(port),
    local: '127.0.0.1',
    localPort: 53,
  };
}
