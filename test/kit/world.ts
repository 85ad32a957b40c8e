import { isLater } from '../../src/base/maybe.ts';
import { VirtualClock } from '../../src/base/virtual-clock.ts';
import { makeLog } from '../../src/base/log.ts';
import { parseAddress } from '../../src/base/ip.ts';
import { seededRandom } from '../../src/base/random.ts';
import { parseCorefile } from '../../src/corefile/parse.ts';
import { SharedRegistry } from '../../src/metrics/shared-registry.ts';
import type { Listener, Serve } from '../../src/net/listener.ts';
import type { Network } from '../../src/net/network.ts';
import { plugins as allPlugins } from './plugins.ts';
import { DataPlane } from '../../src/server/worker/data-plane.ts';
import type { EndpointPlan } from '../../src/server/contract/endpoints.ts';
import type { Plugin } from '../../src/server/contract/plugin.ts';
import { Server } from '../../src/server/control/server.ts';
import { inlinePort } from '../../src/server/control/worker-ports.ts';
import { typeNumber } from '../../src/wire/iana.ts';
import { readMessage, writeMessage, type Message } from '../../src/wire/message.ts';
import { parseName } from '../../src/wire/name.ts';
import { printMessage } from '../../src/wire/print.ts';
import { Query, type Proto } from '../../src/wire/query.ts';
import { silence } from '../../src/wire/reply.ts';
import { stamp, stampRejection } from '../../src/wire/stamp.ts';

export interface WorldParts {
  /** Files that the Corefile may import, by path. Plugins that read files get them from `folder`. */
  readonly files?: Readonly<Record<string, string>>;
  /** Base of relative paths, default `/world`. */
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly network?: Network;
  readonly clock?: VirtualClock;
  readonly plugins?: readonly Plugin[];
  readonly seed?: number;
}

export interface AskOptions {
  readonly proto?: Proto;
  /** Client address, default 10.244.0.9. */
  readonly client?: string;
  /** EDNS; implied by the options below. */
  readonly edns?: boolean;
  readonly udpSize?: number;
  readonly dnssecOk?: boolean;
  readonly flags?: number;
  readonly qclass?: number;
  readonly id?: number;
  /** Whether there is room for one more query that waits; default true. */
  readonly mayWait?: boolean;
  /** Listen address, default the first. */
  readonly server?: string;
}

/**
 * A whole server without sockets: control plane and one data plane on this thread, in virtual time. Questions go through
 * the same bytes as from a socket: read as a datagram, answered by the chain, stamped, decoded again.
 */
export interface World {
  readonly clock: VirtualClock;
  /** Log lines so far. */
  readonly log: readonly string[];
  readonly server: Server;
  /** Asks `NAME TYPE` and gives the decoded reply. Throws if nothing was sent. */
  ask(question: string, options?: AskOptions): Promise<Message>;
  /** The same, null when the server keeps silent. */
  tryAsk(question: string, options?: AskOptions): Promise<Message | null>;
  /** The reply as dig would print it. */
  dig(question: string, options?: AskOptions): Promise<string>;
  /** Sends any bytes; null: no reply. */
  send(bytes: Uint8Array, options?: AskOptions): Promise<Uint8Array | null>;
  /** Prometheus text of all threads. */
  metrics(): string;
  /** Changes the Corefile; takes effect at `server.reload()`. */
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
  const serves = new Map<string, Serve>();
  const plugins = parts.plugins ?? allPlugins;
  const files = parts.files ?? {};
  const folder = parts.folder ?? '/world';
  let text = corefile;
  const sink = makeLog((line) => log.push(line));
  const listen = (endpoint: EndpointPlan, serve: Serve): Listener => ({
    endpoint,
    port: endpoint.port,
    adopt: () => undefined,
    open: () => {
      serves.set(endpoint.server, serve);
      return Promise.resolve();
    },
    close: () => {
      serves.delete(endpoint.server);
      return Promise.resolve();
    },
  });
  const server = new Server({
    plugins: () => Promise.resolve(plugins),
    clock,
    random,
    folder,
    log: sink,
    env: parts.env ?? {},
    workers: 1,
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
    spawn: () =>
      inlinePort(
        (send) =>
          new DataPlane({
            plugins: () => Promise.resolve(plugins),
            clock,
            random,
            listen,
            send,
            log: sink,
            metrics: new SharedRegistry((registration) => send({ kind: 'register', registration })),
            network: parts.network ?? noNetwork,
          }),
      ),
    onFatal: (reason) => log.push(`[FATAL] ${reason}`),
  });
  await clock.run(server.start());
  const send = (bytes: Uint8Array, options: AskOptions = {}): Promise<Uint8Array | null> =>
    clock.run(sendBytes(serves, clock, bytes, options));
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
    tryAsk,
    ask,
    dig: async (question, options) => printMessage(await ask(question, options)),
    metrics: () => server.scrape().body,
    setCorefile: (changed) => {
      text = changed;
    },
    close: async () => void (await clock.run(server.stop())),
  };
}

const poison = questionBytes('poisoned.invalid. HINFO', { id: 1 });

async function sendBytes(
  serves: ReadonlyMap<string, Serve>,
  clock: VirtualClock,
  bytes: Uint8Array,
  options: AskOptions,
): Promise<Uint8Array | null> {
  const serve = options.server === undefined ? [...serves.values()][0] : serves.get(options.server);
  if (serve === undefined) throw new Error('nothing listens');
  const query = new Query();
  const triage = query.read(bytes, 0, bytes.length);
  const out = new Uint8Array(70_000);
  if (triage === 'ignore') return null;
  if (triage !== 'serve')
    return out.slice(0, stampRejection(query, triage === 'formerr' ? 1 : 4, false, out, 0));
  const peer = parseAddress(options.client ?? '10.244.0.9')!;
  query.proto = options.proto ?? 'udp';
  query.family = peer.length === 4 ? 4 : 6;
  query.peer = peer;
  query.peerAt = 0;
  query.peerPort = 40_000;
  query.local = '10.96.0.10';
  query.localPort = 53;
  query.arrived = clock.now();
  query.mayWait = options.mayWait ?? true;
  const answered = serve(query);
  const kept = isLater(answered) ? query.keep() : query;
  // A listener would read the next query into the same slot now: whoever forgot to keep this one shows it.
  if (kept !== query) query.read(poison, 0, poison.length);
  const reply = await answered;
  if (reply === silence) return null;
  return out.slice(0, stamp(reply, kept, out, 0));
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

/** Absolute, and checked. */
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
