/** A whole server in virtual time. */
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { makeLog } from '../../src/server/base/log.ts';
import { parseAddress } from '../../src/server/base/ip.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import { parseCorefile } from '../../src/server/corefile/parse.ts';
import type { Network } from '../../src/server/transport/upstream-address.ts';
import { plugins as allPlugins } from './plugins.ts';
import type { Plugin } from '../../src/server/engine/contract/plugin.ts';
import type { Server } from '../../src/server/engine/control/server.ts';
import { EmbeddedServer, type Sender } from '../../src/server/engine/embedded.ts';
import { typeNumber } from '../../src/server/wire/iana.ts';
import { readMessage, writeMessage, type Message } from '../../src/server/wire/message.ts';
import { parseName } from '../../src/server/wire/name.ts';
import { printMessage } from '../../src/server/wire/print.ts';
import type { Proto } from '../../src/server/wire/query-message.ts';

/** The files and sources that accompany a Corefile. */
export interface WorldParts {
  /** Files that the Corefile may import, by path. Plugins that read files find them in `directory`. */
  readonly files?: Readonly<Record<string, string>>;
  /** The base for relative paths; `/world` by default. */
  readonly directory?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly network?: Network;
  readonly clock?: VirtualClock;
  readonly plugins?: readonly Plugin[];
  readonly seed?: number;
}

/** The differences between a query and a plain one over UDP. */
export interface AskOptions {
  readonly proto?: Proto;
  /** The client's address; 10.244.0.9 by default. */
  readonly client?: string;
  /** Set automatically if any option below is set. */
  readonly edns?: boolean;
  readonly udpSize?: number;
  readonly dnssecOk?: boolean;
  readonly flags?: number;
  readonly qclass?: number;
  readonly id?: number;
  /** True if another query may wait. True by default. */
  readonly mayWait?: boolean;
  /** The listen address. By default, the first one. */
  readonly server?: string;
}

/**
 * A whole server without sockets: the control plane and one data plane, on this thread and in virtual time. Queries
 * take the same path as from a socket: they are read as datagrams, answered by the chain, stamped, and decoded again.
 */
export interface World {
  readonly clock: VirtualClock;
  readonly log: readonly string[];
  readonly server: Server;
  /** Sends `NAME TYPE` and returns the decoded reply. Throws if there is no reply. */
  ask(question: string, options?: AskOptions): Promise<Message>;
  /** Does the same, but returns null if there is no reply. */
  tryAsk(question: string, options?: AskOptions): Promise<Message | null>;
  /** Sends a query without advancing time. The reply arrives once the test advances the clock. */
  begin(question: string, options?: AskOptions): Promise<Message | null>;
  /** The reply as dig would print it. */
  dig(question: string, options?: AskOptions): Promise<string>;
  /** Sends arbitrary bytes. Returns null if there is no reply. */
  send(bytes: Uint8Array, options?: AskOptions): Promise<Uint8Array | null>;
  /** Does the same without advancing time. */
  exchange(bytes: Uint8Array, options?: AskOptions): Promise<Uint8Array | null>;
  /** Prometheus text for all threads. */
  metrics(): string;
  /** Takes effect at `server.reload()`. */
  setCorefile(text: string): void;
  close(): Promise<void>;
}

const noNetwork: Network = {
  upstream: () => {
    throw new Error('this world has no network: give makeWorld one');
  },
};

export async function makeWorld(corefile: string, parts: WorldParts = {}): Promise<World> {
  const clock = parts.clock ?? new VirtualClock();
  const random = seededRandom(parts.seed ?? 1);
  const log: string[] = [];
  const plugins = parts.plugins ?? allPlugins;
  const files = parts.files ?? {};
  const directory = parts.directory ?? '/world';
  let text = corefile;
  const sink = makeLog(
    (line) => log.push(line),
    () => embedded.server.debugging,
  );
  const embedded: EmbeddedServer = new EmbeddedServer({
    plugins: () => Promise.resolve(plugins),
    clock,
    random,
    directory,
    log: sink,
    env: parts.env ?? {},
    network: parts.network ?? noNetwork,
    operational: true,
    onFatal: (reason) => log.push(`[FATAL] ${reason}`),
    load: () =>
      parseCorefile({
        file: 'Corefile',
        text,
        dnsPort: 53,
        env: parts.env ?? {},
        directives: plugins.map(({ name }) => name),
        syntaxes: plugins.map(({ syntax }) => syntax),
        readFile: (path) => {
          const found = files[path] ?? files[path.replace(/^.*\//, '')];
          if (found === undefined)
            throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
          return found;
        },
        glob: (pattern) => Object.keys(files).filter((path) => globMatches(pattern, path)),
      }),
  });
  const { server } = embedded;
  await clock.run(embedded.start());
  const exchange = async (
    bytes: Uint8Array,
    options: AskOptions = {},
  ): Promise<Uint8Array | null> => {
    const at = options.server ?? embedded.open[0]?.server;
    if (at === undefined) throw new Error('nothing listens');
    return embedded.exchange(bytes, senderOf(options), at);
  };
  const send = (bytes: Uint8Array, options: AskOptions = {}): Promise<Uint8Array | null> =>
    clock.run(exchange(bytes, options));
  const tryAsk = async (question: string, options: AskOptions = {}): Promise<Message | null> => {
    const reply = await send(questionBytes(question, options), options);
    return reply === null ? null : readMessage(reply);
  };
  const ask = async (question: string, options: AskOptions = {}): Promise<Message> => {
    const reply = await tryAsk(question, options);
    if (reply === null) throw new Error(`no reply to ${question}`);
    return reply;
  };
  return {
    clock,
    log,
    server,
    send,
    exchange,
    tryAsk,
    ask,
    begin: async (question, options = {}) => {
      const reply = await exchange(questionBytes(question, options), options);
      return reply === null ? null : readMessage(reply);
    },
    dig: async (question, options) => printMessage(await ask(question, options)),
    metrics: () => server.metrics(),
    setCorefile: (changed) => {
      text = changed;
    },
    close: () => clock.run(embedded.stop()),
  };
}

function senderOf({ client = '10.244.0.9', proto = 'udp', mayWait = true }: AskOptions): Sender {
  return {
    proto,
    address: parseAddress(client)!,
    port: 40_000,
    local: '10.96.0.10',
    localPort: 53,
    crowded: !mayWait,
  };
}

function questionBytes(question: string, options: AskOptions): Uint8Array {
  const [name, type = 'A'] = question.trim().split(/\s+/);
  const number = typeNumber(type);
  if (number === null) throw new Error(`no such type: ${type}`);
  const edns = options.edns === true || options.udpSize !== undefined || options.dnssecOk === true;
  return writeMessage({
    id: options.id ?? 4711,
    flags: options.flags ?? 0x0100,
    rcode: 0,
    question: [{ name: wireText(name!), type: number, class: options.qclass ?? 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns: edns
      ? {
          udpSize: options.udpSize ?? 1232,
          version: 0,
          dnssecOk: options.dnssecOk ?? false,
          options: [],
        }
      : null,
  });
}

/** Names are absolute and validated. */
function wireText(name: string): string {
  parseName(name);
  return name.endsWith('.') ? name : `${name}.`;
}

function globMatches(pattern: string, path: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '[^/]*')
    .replaceAll('?', '[^/]');
  return new RegExp(`(^|/)${source.replace(/^.*\//, '')}$`).test(path);
}
