/** `console`: streams this server's queries to `ndots top` and `ndots console` over HTTP. */
import { hostname } from 'node:os';
import { builtins } from '../../base/builtins.ts';
import type { LineRingMemory } from '../../base/line-ring.ts';
import { secretGate, type AccessGate } from '../../base/http-access.ts';
import { isLoopbackHost } from '../../base/ip.ts';
import { andThen, isLater } from '../../base/maybe.ts';
import { readSecret, readSecretOrLog } from '../../base/secret-file.ts';
import { optional, required } from '../../corefile/positions.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { fields, setting } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { choice, hostPort, word } from '../../corefile/word-values.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import { ownVersion } from '../../engine/contract/own-version.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { exchangeTaps } from '../../engine/contract/ports.ts';
import { Tap } from '../../engine/taps/message-tap.ts';
import { pollCounts } from '../../engine/taps/polled-counts.ts';
import { ApiAccess } from '../../kube/access/api-access.ts';
import { inClusterConnection, kubeconfigConnection } from '../../kube/api/connection.ts';
import { dnstapPrefix, TAP_PATH } from '../../wire/dnstap.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { TapReaders } from './tap-readers.ts';

/** Memory for each worker's messages, in bytes. */
const RING_BYTES = 4 * 1024 * 1024;
/** Size in bytes of the token that is generated at startup. */
const TOKEN_BYTES = 24;

const address = hostPort('ADDRESS');

const syntax = directive({
  name: 'console',
  summary: "streams the server's queries live to `ndots top` and `ndots console`",
  repeat: 'once',
  args: {
    address: optional(address, {
      default: { host: '127.0.0.1', port: 9155 },
      help: 'listen address for `ndots top --server` and `ndots console --server`',
    }),
  },
  properties: {
    tokenFile: setting('token_file', word('FILE'), {
      help: 'file with the token that readers must send; it is read for each connection. Without it, a new token is logged at each start',
    }),
    auth: fields(
      'auth',
      { by: required(choice('kubernetes')), kubeconfig: optional(word('KUBECONFIG')) },
      {
        help: 'let the API server decide who may read; without KUBECONFIG, the API server of the cluster that this server runs in',
      },
    ),
    identity: setting('identity', word('IDENTITY'), {
      help: "the server's name in the views (default: the machine's host name)",
    }),
  },
  check: ({ auth, tokenFile }, at) =>
    auth === null || tokenFile === null
      ? []
      : [
          pluginRemark('console', at, 'token_file and auth exclude each other', {
            code: 'console-two-gates',
            remedy: 'Remove one of the two lines.',
          }),
        ],
  warn: ({ address: where }, at) =>
    isLoopbackHost(where.host)
      ? []
      : [
          pluginRemark('console', at, `${address.print(where)} is reachable from other machines`, {
            code: 'directive-warning',
            hint: 'Queries and the token are sent without encryption.',
            remedy:
              'Write console without an address (127.0.0.1:9155), and forward the port: kubectl port-forward POD 9155.',
          }),
        ],
});

/** The first message to a worker, which contains its shared memory. */
interface TapMemory {
  readonly ring: LineRingMemory;
  /** 1 while there are readers. */
  readonly watched: Int32Array<SharedArrayBuffer>;
}

/** While no reader is connected, workers write nothing and read only one number per query. */
export const consolePlugin: Plugin = definePlugin({
  syntax,
  operational: true,
  control(options, context) {
    const at = address.print(options.address);
    const kept = context.keep(`console/${at}`, () => new KeptReaders(context));
    const { readers } = kept;
    const access = {
      gate: gateOf(options, context, kept),
      identity: options.identity ?? hostname(),
    };
    context.http(at, TAP_PATH, (request, response) => readers.serve(request, response, access));
    if (options.tokenFile === null && options.auth === null)
      context.onServing(() =>
        context.log.info(`ndots top --server ${at}, with the token ${kept.made}`),
      );
    context.onServing((switched) => {
      readers.configuration = context.configuration.texts;
      if (kept.isServing) readers.reloaded(switched);
      kept.isServing = true;
    });
    const rings: LineRingMemory[] = [];
    context.onJoin(() => {
      const ring = readers.frames.add(RING_BYTES);
      rings.push(ring);
      return [{ ring, watched: readers.watched } satisfies TapMemory];
    });
    context.onStop(() => {
      for (const ring of rings) readers.frames.retire(ring);
    });
    count(readers, context);
  },
  setup({ identity }, context, next) {
    const prefix = dnstapPrefix(identity ?? hostname(), `ndots-${ownVersion()}`);
    const tap = new Tap(prefix, true, '', context.clock);
    let watched: Int32Array = new Int32Array(1);
    context.onMessage((message) => {
      const { ring, watched: shared } = message as TapMemory;
      tap.use(ring);
      watched = shared;
    });
    context.offer(exchangeTaps, {
      exchanged: (exchange) => {
        if (watched[0] !== 0) tap.exchangedBoth(exchange);
      },
    });
    const replied = (reply: Reply, query: Query): Reply => {
      tap.both(query, reply);
      return reply;
    };
    return (query) => {
      // Internal lookups (CNAME targets) are not made by clients.
      if (watched[0] === 0 || query.depth > 0) return next(query);
      const reply = next(query);
      return isLater(reply) ? andThen(reply, replied, query.keep()) : replied(reply, query);
    };
  },
});

function gateOf(
  { auth, tokenFile }: Options<typeof syntax>,
  context: ControlContext,
  { made }: KeptReaders,
): AccessGate {
  const { clock, env, log } = context;
  if (auth !== null) {
    const file = auth.kubeconfig === null ? null : context.path(auth.kubeconfig);
    return context.keep(`console/auth/${file ?? ''}`, () => {
      const connection =
        file === null
          ? inClusterConnection({ environment: env })
          : kubeconfigConnection(file, undefined, clock);
      return new ApiAccess({ connection, version: ownVersion(), clock, log });
    });
  }
  if (tokenFile === null) return secretGate(() => made);
  const file = context.path(tokenFile);
  readSecret(file);
  return secretGate(() => readSecretOrLog(file, log));
}

/** The stream's readers and the token generated for them; both survive reloads. */
class KeptReaders {
  readonly readers: TapReaders;
  /** True once a configuration is being served. */
  isServing = false;
  readonly made: string = builtins.crypto().randomBytes(TOKEN_BYTES).toString('base64url');

  constructor({ clock }: ControlContext) {
    this.readers = new TapReaders(clock);
  }

  close(): void {
    this.readers.close();
  }
}

function count(readers: TapReaders, context: ControlContext): void {
  const { metrics } = context;
  const open = metrics.gauge('ndots_console_readers', 'Connected readers of live queries.');
  const sent = metrics.counter(
    'ndots_console_sent_total',
    'Messages sent to readers of live queries.',
  );
  const leftOut = metrics.counter(
    'ndots_console_left_out_total',
    'Messages that a reader of live queries missed because it or the server was too slow.',
  );
  pollCounts(
    context,
    [
      { counter: sent, count: () => readers.sent },
      { counter: leftOut, count: () => readers.leftOut },
    ],
    () => open.set(readers.connected),
  );
}
