/**
 * `ndots trace --corefile FILE`: the answers come from that Corefile, run in this process on the lookup's own (virtual)
 * clock, without a socket. What it forwards is answered by the answers file.
 */
import { globSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { FILE_MAX, readFileText } from '../base/read-file.ts';
import { makeLog } from '../base/log.ts';
import { parseAddress } from '../base/ip.ts';
import type { Random } from '../base/random.ts';
import type { VirtualClock } from '../base/virtual-clock.ts';
import { parseCorefile } from '../corefile/parse.ts';
import type { Syntax } from '../corefile/syntax.ts';
import { SharedRegistry } from '../metrics/shared-registry.ts';
import type { Listener, Serve } from '../net/listener.ts';
import { ExchangeError } from '../net/exchange.ts';
import {
  promisedUpstream,
  type ExchangeReply,
  type Network as UpstreamNetwork,
  type UpstreamParts,
} from '../net/network.ts';
import { absent, directiveNames, external, loadPlugins } from '../plugins/order.ts';
import { answerBySpec } from '../resolver/answer-spec.ts';
import { nextAnswer, type RuleCounts, type Script } from '../resolver/answers-file.ts';
import type { Query } from '../resolver/network.ts';
import type { Answering } from '../resolver/scripted.ts';
import type { Reply } from '../resolver/reply.ts';
import { DataPlane } from '../server/worker/data-plane.ts';
import type { EndpointPlan } from '../server/contract/endpoints.ts';
import type { Plugin } from '../server/contract/plugin.ts';
import { Server } from '../server/control/server.ts';
import { inlinePort } from '../server/control/worker-ports.ts';
import { typeName } from '../wire/iana.ts';
import { printName } from '../wire/name.ts';
import { Query as WireQuery } from '../wire/query.ts';
import { silence } from '../wire/reply.ts';
import { stamp, stampRejection } from '../wire/stamp.ts';
import { queryBytes, readReply } from '../resolver/query-bytes.ts';
import { replyBytes } from '../resolver/reply-bytes.ts';
import { readText } from './trace-settings.ts';

/** Directives that open ports or watch files: of no use to one lookup. */
const left = new Set([
  'health',
  'ready',
  'prometheus',
  'pprof',
  'reload',
  'loop',
  'debug',
  'dnstap',
  'trace',
]);

async function plugins(names?: ReadonlySet<string>): Promise<readonly Plugin[]> {
  const loaded = await loadPlugins(names);
  return loaded.map(({ name, syntax, ...parts }) =>
    left.has(name) ? { name, syntax } : { name, syntax, ...parts },
  );
}

export interface CorefileServer extends Answering {
  stop(): Promise<void>;
}

/** Starts the server; throws the Corefile's problems. `client` is the address that it sees. */
export async function startCorefile(
  file: string,
  script: Script,
  clock: VirtualClock,
  random: Random,
  client: string,
): Promise<CorefileServer> {
  const serves = new Map<string, Serve>();
  const log = makeLog(() => {});
  const listen = (endpoint: EndpointPlan, serve: Serve): Listener => ({
    endpoint,
    port: endpoint.port,
    adopt: () => undefined,
    open: () => {
      if (endpoint.scheme === 'dns') serves.set(endpoint.server, serve);
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  });
  const network = scriptedUpstreams(script, clock);
  const server = new Server({
    plugins,
    clock,
    random,
    log,
    env: process.env,
    folder: dirname(resolve(file)),
    workers: 1,
    load: (syntaxes) => load(file, syntaxes),
    spawn: () =>
      inlinePort(
        (send) =>
          new DataPlane({
            plugins,
            clock,
            random,
            listen,
            send,
            log,
            metrics: new SharedRegistry((registration) => send({ kind: 'register', registration })),
            network,
          }),
      ),
    onFatal: () => {},
  });
  await clock.run(server.start());
  return {
    answer: (query, protocol) => ask(serves, clock, query, protocol, client),
    stop: async () => void (await clock.run(server.stop())),
  };
}

function load(file: string, syntaxes: readonly Syntax[]): ReturnType<typeof parseCorefile> {
  const text = readText(file, 'Corefile');
  return parseCorefile({
    file,
    text,
    dnsPort: 53,
    env: process.env,
    directives: directiveNames,
    absent,
    external,
    syntaxes,
    readFile: (path) => readFileText(path, FILE_MAX.corefile),
    glob: (pattern) => globSync(pattern).toSorted(),
  });
}

async function ask(
  serves: ReadonlyMap<string, Serve>,
  clock: VirtualClock,
  asked: Query,
  protocol: 'udp' | 'tcp',
  client: string,
): Promise<Reply | null> {
  // Every name server of the resolv.conf is this server: the first endpoint that speaks plain DNS.
  const serve = [...serves.values()][0];
  if (serve === undefined) return null;
  const bytes = queryBytes(asked);
  const query = new WireQuery();
  const out = new Uint8Array(70_000);
  const triage = query.read(bytes, 0, bytes.length);
  if (triage === 'ignore') return null;
  if (triage !== 'serve') {
    return readReply(
      out.slice(0, stampRejection(query, triage === 'formerr' ? 1 : 4, true, out, 0)),
    );
  }
  const peer = parseAddress(client) ?? Uint8Array.of(10, 244, 0, 10);
  query.proto = protocol;
  query.family = peer.length === 4 ? 4 : 6;
  query.peer = peer;
  query.peerAt = 0;
  query.peerPort = 40_000;
  query.local = '10.96.0.10';
  query.localPort = 53;
  query.arrived = clock.now();
  const reply = await serve(query);
  return reply === silence ? null : readReply(out.slice(0, stamp(reply, query, out, 0)));
}

/** What `forward` reaches: the script, whatever the upstream's address. */
function scriptedUpstreams(script: Script, clock: VirtualClock): UpstreamNetwork {
  const counts: RuleCounts = new Map();
  return {
    upstream(parts: UpstreamParts) {
      const exchange = (query: WireQuery, timeoutMs: number): Promise<ExchangeReply> => {
        const name = printName(query.folded);
        const type = typeName(query.type);
        const spec = nextAnswer(script, counts, parts.address.host, name, type);
        const asked: Query = { id: query.id, name, type, edns: null, ad: false, why: '' };
        const reply = answerBySpec(spec, asked, parts.proto === 'udp' ? 'udp' : 'tcp');
        return new Promise((resolve, reject) => {
          const waitMs = reply === null ? timeoutMs : (spec.delayMs ?? script.delayMs);
          clock.after(waitMs, () => {
            if (reply === null) reject(new ExchangeError('timeout', 'i/o timeout'));
            else resolve({ bytes: replyBytes(reply), truncated: reply.truncated, reused: false });
          });
        });
      };
      return promisedUpstream(parts, exchange, () => clock.now());
    },
  };
}
