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
import { EmbeddedServer } from '../server/embedded.ts';
import { typeName } from '../wire/iana.ts';
import { printName } from '../wire/name.ts';
import type { Query as WireQuery } from '../wire/query.ts';
import { queryBytes, readReply } from '../resolver/query-bytes.ts';
import { replyBytes } from '../resolver/reply-bytes.ts';
import { readText } from './trace-settings.ts';

/** The server that a lookup asks. */
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
  const embedded = new EmbeddedServer({
    plugins: loadPlugins,
    clock,
    random,
    log: makeLog(() => {}),
    env: process.env,
    folder: dirname(resolve(file)),
    load: (syntaxes) => load(file, syntaxes),
    network: scriptedUpstreams(script, clock),
    operational: false,
    onFatal: () => {},
  });
  await clock.run(embedded.start());
  const address = parseAddress(client) ?? Uint8Array.of(10, 244, 0, 10);
  const way = { address, port: 40_000, local: '10.96.0.10', localPort: 53 };
  // Every name server of the resolv.conf is this server: the first endpoint that speaks plain DNS.
  const plain = embedded.open.find(({ scheme }) => scheme === 'dns');
  return {
    async answer(query, proto) {
      if (plain === undefined) return null;
      const reply = await embedded.exchange(queryBytes(query), { ...way, proto }, plain.server);
      return reply === null ? null : readReply(reply);
    },
    stop: () => clock.run(embedded.stop()),
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
