/** `dnstap`: the directive and its two parts. */
import { hostname } from 'node:os';
import { andThen, isLater } from '../../base/maybe.ts';
import type { LineRingMemory } from '../../base/line-ring.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import { chained, custom, flag, setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { word } from '../../corefile/word-values.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import { ownVersion } from '../../engine/contract/own-version.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { readServerCertificate } from '../../engine/contract/server-certificate.ts';
import { exchangeTaps } from '../../engine/contract/ports.ts';
import { dnstapPrefix } from '../../wire/dnstap.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { Incoming } from './incoming.ts';
import { endpoint, type DnstapEndpoint } from './dnstap-options.ts';
import { Outgoing } from './outgoing.ts';
import { Tap } from '../../engine/taps/message-tap.ts';
import { pollCounts } from '../../engine/taps/polled-counts.ts';

/** Memory in bytes for ten thousand messages. */
const QUEUE_BYTES = 2 * 1024 * 1024;

const syntax = directive({
  name: 'dnstap',
  summary: 'sends queries and replies to a collector as dnstap messages',
  repeat: 'each',
  unread: ['words'],
  args: { endpoint },
  properties: {
    identity: chained(
      setting('identity', word('IDENTITY'), {
        help: "the server's name in messages (default: the machine's host name)",
      }),
    ),
    version: chained(
      setting('version', word('VERSION'), {
        help: "the server's version in messages (default: `ndots-` and its version number)",
      }),
    ),
    extra: chained(
      setting('extra', word('EXTRA'), {
        help: 'text for the `extra` field, with the same placeholders as in `log`, such as {/forward/upstream}',
      }),
    ),
    tls: custom(
      'tls',
      'CERT KEY [CA]',
      (words, refuse) => {
        const [certificate = null, key = null, authority = null] = words.map(({ text }) => text);
        if (certificate === null || key === null)
          return refuse('tls requires cert and key file paths');
        return { certificate, key, authority };
      },
      {
        help: 'PEM files for `listen tls://…`; if `CA` is given, sinks need a certificate signed by it',
      },
    ),
    skipVerify: chained(
      flag('skipverify', {
        help: "do not verify the peer's certificate",
      }),
    ),
  },
  check({ endpoint: { listen }, tls }, at) {
    if (tls !== null && !listen)
      return [pluginProblem('dnstap', at, 'tls directive only valid for listeners')];
    return [];
  },
  warn: (options, at) =>
    hasNoCertificate(options)
      ? [
          pluginRemark('dnstap', at, 'TLS listener requires cert and key files', {
            code: 'directive-warning',
            hint: 'No client can connect, so no messages are sent.',
            remedy: 'Write in braces: tls CERT KEY',
          }),
        ]
      : [],
});

/**
 * Reports every query and reply, and every exchange with an upstream. Workers write frames to memory, and the control
 * part sends them on.
 */
export const dnstap: Plugin = definePlugin({
  syntax,
  operational: true,
  control(options, context) {
    const { endpoint: to, skipVerify, tls } = options;
    if (hasNoCertificate(options)) return;
    const files = tls === null || to.kind !== 'tls' ? null : readServerCertificate(tls, context);
    const { clock, random, log } = context;
    const key = `dnstap/${JSON.stringify([to, skipVerify, tls])}`;
    const outlet = context.keep(key, () =>
      to.listen
        ? new Incoming(to, files, skipVerify, clock, log)
        : new Outgoing(to, skipVerify, clock, random, log),
    );
    if (outlet instanceof Incoming) outlet.renew(files);
    const rings: LineRingMemory[] = [];
    context.onJoin(() => {
      const ring = outlet.frames.add(to.queue * QUEUE_BYTES);
      rings.push(ring);
      return [ring];
    });
    context.onStart(() => outlet.start());
    count(outlet, to.text, context);
    context.onStop(() => {
      for (const ring of rings) outlet.frames.retire(ring);
    });
  },
  setup({ endpoint: { full }, identity, version, extra }, context, next) {
    const prefix = dnstapPrefix(identity ?? hostname(), version ?? `ndots-${ownVersion()}`);
    const tap = new Tap(prefix, full, extra ?? '', context.clock);
    context.onMessage((message) => tap.use(message as LineRingMemory));
    context.offer(exchangeTaps, tap);
    const replied = (reply: Reply, query: Query): Reply => {
      tap.reply(query, reply);
      return reply;
    };
    return (query) => {
      // Internal lookups (CNAME targets) are not made by clients.
      if (query.depth > 0) return next(query);
      tap.query(query);
      const reply = next(query);
      return isLater(reply) ? andThen(reply, replied, query.keep()) : replied(reply, query);
    };
  },
});

function hasNoCertificate({
  endpoint: { listen, kind },
  tls,
}: {
  readonly endpoint: DnstapEndpoint;
  readonly tls: unknown;
}): boolean {
  return listen && kind === 'tls' && tls === null;
}

function count(outlet: Incoming | Outgoing, to: string, context: ControlContext): void {
  const { metrics } = context;
  const labels = ['endpoint'] as const;
  const lost = metrics
    .counter('ndots_dnstap_lost_total', 'Counter of dnstap messages that were lost.', labels)
    .with(to);
  const sent = metrics
    .counter('ndots_dnstap_sent_total', 'Counter of dnstap messages that were sent.', labels)
    .with(to);
  const open = metrics
    .gauge('ndots_dnstap_connections', 'Open connections that carry dnstap messages.', labels)
    .with(to);
  const evicted = metrics
    .counter(
      'ndots_dnstap_evicted_total',
      'Counter of dnstap clients that were disconnected because there were too many.',
      labels,
    )
    .with(to);
  pollCounts(
    context,
    [
      { counter: lost, count: () => outlet.lost },
      { counter: sent, count: () => outlet.written },
      { counter: evicted, count: () => (outlet instanceof Incoming ? outlet.evicted : 0) },
    ],
    () => open.set(outlet.connections),
    () => open.set(0),
  );
}
