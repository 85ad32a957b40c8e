/**
 * Answers a planned lookup using a complete server in this process, without sockets and on the lookup's own (virtual)
 * clock. The Corefile is given with `--corefile` and defaults to kubeadm's. Objects come from `--manifests`, and
 * upstream replies from the answers file.
 */
import { dirname, resolve } from 'node:path';
import { systemClock } from '../../../server/base/clock.ts';
import { makeLog } from '../../../server/base/log.ts';
import { parseAddress } from '../../../server/base/ip.ts';
import { Problems, problemsIn } from '../../../server/base/problem.ts';
import { seededRandom } from '../../../server/base/random.ts';
import type { VirtualClock } from '../../../server/base/virtual-clock.ts';
import type { ParseOutput } from '../../../server/corefile/parse.ts';
import { withObjects } from '../../../tools/diff/prepare.ts';
import { ExchangeError } from '../../../server/transport/upstream/upstream-exchange.ts';
import {
  promisedUpstream,
  type ExchangeReply,
  type Network,
  type UpstreamParts,
} from '../../../server/transport/upstream-address.ts';
import { loadPlugins } from '../../../server/plugins/order.ts';
import { answerBySpec } from '../../../tools/resolver/answer-spec.ts';
import { nextAnswer, type RuleCounts, type Script } from '../../../tools/resolver/answers-file.ts';
import type { QueryToSend } from '../../../tools/resolver/network.ts';
import type { StartedServer, StartServer } from '../../../tools/resolver/run-lookup.ts';
import { EmbeddedServer } from '../../../server/engine/embedded.ts';
import { within } from '../../../server/engine/control/time-limit.ts';
import { typeName } from '../../../server/wire/iana.ts';
import { printName } from '../../../server/wire/name.ts';
import type { Query } from '../../../server/transport/query.ts';
import { queryBytes, readReply } from '../../../tools/resolver/query-bytes.ts';
import { replyBytes } from '../../../tools/resolver/reply-bytes.ts';
import { parseStartedCorefile } from '../parse-corefile.ts';

export interface NamedCorefile {
  /** File name for messages. */
  readonly file: string;
  /** Base directory for relative paths. */
  readonly directory: string;
  readonly text: string;
  /** Manifests that replace the clusters in `kubernetes` blocks, or null to use those clusters. */
  readonly manifests: string | null;
}

export interface TraceServerParts {
  readonly corefile: NamedCorefile;
  /** Upstream replies. */
  readonly script: Script;
  /** The client address that the server sees. */
  readonly client: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called once for each warning about the Corefile or the objects. */
  readonly tell: (text: string) => void;
}

/** Describes a Corefile given by the user. */
export function corefileOf(file: string, text: string, manifests: string | null): NamedCorefile {
  const objects = manifests === null ? null : resolve(manifests);
  return { file, directory: dirname(resolve(file)), text, manifests: objects };
}

/** Name of the generated Corefile for `--manifests`. */
const MADE = '--manifests';

/** kubeadm's Corefile, reduced to the parts that affect replies, with the objects in these manifests. */
export function corefileFor(manifests: string, clusterDomain: string): NamedCorefile {
  const text = `.:53 {
    kubernetes ${clusterDomain} in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    forward . 192.0.2.53
    cache 30
}
`;
  return { file: MADE, directory: process.cwd(), text, manifests: resolve(manifests) };
}

/** Time limit for loading objects, in milliseconds of real time. */
const READING_MS = 5000;

/** Returns a function that starts such a server for each lookup, or throws the Corefile's problems. */
export function traceServer(parts: TraceServerParts): StartServer {
  const told = new Set<string>();
  const tellOnce = (text: string): void => {
    if (told.has(text)) return;
    told.add(text);
    parts.tell(text);
  };
  let patienceMs = READING_MS;
  return async (clock) => {
    let starting = true;
    const embedded = embed(parts, clock, (text) => starting && tellOnce(text));
    const started = embedded.start().catch((error: unknown) => {
      throw withoutMadePlaces(error);
    });
    // Objects load in real time, during which the lookup's clock is stopped. After one timeout, later servers do not
    // wait again.
    if (!(await within(systemClock, patienceMs, started))) patienceMs = 0;
    await clock.run(started);
    starting = false;
    return serverOf(embedded, parts.client, clock);
  };
}

/** Removes positions in the generated Corefile, which users never see. */
function withoutMadePlaces(error: unknown): unknown {
  const problems = problemsIn(error);
  if (problems === null) return error;
  return new Problems(
    problems.map((each) => (each.place?.file === MADE ? each.with({ place: undefined }) : each)),
  );
}

function embed(
  { corefile: { file, directory, text, manifests }, script, env }: TraceServerParts,
  clock: VirtualClock,
  tell: (text: string) => void,
): EmbeddedServer {
  return new EmbeddedServer({
    plugins: loadPlugins,
    clock,
    random: seededRandom(1),
    log: makeLog((line) => {
      const remark = /^\[(?:WARNING|ERROR)\] ([^]*)$/.exec(line)?.[1];
      if (remark !== undefined) tell(remark);
    }),
    env,
    directory,
    load(syntaxes) {
      const output = parseStartedCorefile({ file, text, dnsPort: 53, env, syntaxes });
      return manifests === null ? output : withObjectsOf(output, manifests);
    },
    network: scriptedUpstreams(script, clock),
    operational: false,
    onFatal: () => {},
  });
}

function withObjectsOf(output: ParseOutput, manifests: string): ParseOutput {
  const blocks = output.corefile.blocks.map((block) => ({
    ...block,
    directives: block.directives.map((directive) =>
      directive.name === 'kubernetes' ? withObjects(directive, manifests) : directive,
    ),
  }));
  return { ...output, corefile: { ...output.corefile, blocks } };
}

function serverOf(embedded: EmbeddedServer, client: string, clock: VirtualClock): StartedServer {
  const address = parseAddress(client) ?? Uint8Array.of(10, 244, 0, 10);
  const way = { address, port: 40_000, local: '10.96.0.10', localPort: 53 };
  // Every name server in resolv.conf is this server's first endpoint for plain DNS.
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

/** The network for `forward`. Every upstream address sends the scripted replies. */
function scriptedUpstreams(script: Script, clock: VirtualClock): Network {
  const counts: RuleCounts = new Map();
  return {
    upstream(parts: UpstreamParts) {
      const exchange = (query: Query, timeoutMs: number): Promise<ExchangeReply> => {
        const name = printName(query.folded);
        const type = typeName(query.type);
        const spec = nextAnswer(script, counts, parts.address.host, name, type);
        const asked: QueryToSend = { id: query.id, name, type, edns: null, ad: false, why: '' };
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
