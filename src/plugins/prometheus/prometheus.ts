import { builtins } from '../../base/builtins.ts';
import { optional } from '../../corefile/positions.ts';
import { custom, flag } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { hostPort } from '../../corefile/values.ts';
import type { HttpHandler } from '../../server/contract/control-context.ts';
import { definePlugin } from '../../server/contract/plugin.ts';
import type { Reply } from '../../wire/reply.ts';
import { Enabled, linkNames } from './enabled.ts';
import { Meters, RouteMeters, sizeOf, slotOf } from './meters.ts';

const address = hostPort('ADDRESS');

export const syntax = directive({
  name: 'prometheus',
  summary: 'counts queries and serves all metrics over HTTP',
  repeat: 'once',
  args: {
    address: optional(address, {
      default: { host: 'localhost', port: 9153 },
      help: 'where `/metrics` is served; blocks of one address share it',
    }),
  },
  properties: {
    runtimeMetrics: flag('runtime_metrics', {
      help: "accepted for compatibility: the runtime's metrics are always there",
    }),
    tls: custom(
      'tls',
      'CONFIGFILE',
      (_words, refuse) =>
        refuse('tls is not available for the metrics endpoint', undefined, {
          hint: 'Metrics are served over plain HTTP.',
          remedy:
            'Bind to localhost (the default) and put a TLS proxy such as kube-rbac-proxy in front.',
        }),
      { help: 'not available here: a Corefile with it is refused rather than served without TLS' },
    ),
  },
});

export const prometheus = definePlugin({
  syntax,
  control(options, context) {
    context.http(address.print(options.address), '/metrics', serveMetrics(context.scrape));
    const enabled = context.keep('prometheus/enabled', () => new Enabled(context.metrics));
    const releases: (() => void)[] = [];
    for (const server of context.servers) {
      for (const zone of context.zones) {
        for (const name of linkNames) {
          if (context.has(name)) releases.push(enabled.hold(server, zone, context.view, name));
        }
      }
    }
    context.onStop(() => {
      for (const release of releases) release();
    });
  },

  setup(_options, context, next) {
    const { clock, metrics } = context;
    const meters = new Meters(metrics);
    context.onDropped((query, reply) => {
      const size = sizeOf(reply, query.questionEnd);
      const took = clock.now() - query.arrived;
      const asked = query.end - query.start;
      meters.of(query.route).count(slotOf(query), asked, query.dnssecOk, reply, size, took);
    });
    const count: Count = (counts, slot, size, dnssecOk, questionEnd, begun, reply) => {
      counts.count(slot, size, dnssecOk, reply, sizeOf(reply, questionEnd), clock.now() - begun);
      return reply;
    };
    return (query) => {
      const counts = meters.of(query.route);
      const slot = slotOf(query);
      const { dnssecOk, questionEnd } = query;
      const size = query.end - query.start;
      // Internal look-ups did not arrive: their time begins here.
      const begun = query.depth > 0 || query.proto === 'internal' ? clock.now() : query.arrived;
      const reply = next(query);
      return reply instanceof Promise
        ? countLater(count, counts, slot, size, dnssecOk, questionEnd, begun, reply)
        : count(counts, slot, size, dnssecOk, questionEnd, begun, reply);
    };
  },
});

type Count = (
  counts: RouteMeters,
  slot: number,
  size: number,
  dnssecOk: boolean,
  questionEnd: number,
  begun: number,
  reply: Reply,
) => Reply;

/** A function of its own: a closure inside the link would cost every query its context. */
function countLater(
  count: Count,
  counts: RouteMeters,
  slot: number,
  size: number,
  dnssecOk: boolean,
  questionEnd: number,
  begun: number,
  reply: Promise<Reply>,
): Promise<Reply> {
  return reply.then((later) => count(counts, slot, size, dnssecOk, questionEnd, begun, later));
}

/** In the form the scraper asks for, compressed if it can take that. */
function serveMetrics(
  scrape: (accept: string | undefined) => { type: string; body: string },
): HttpHandler {
  return (request, response) => {
    const { type, body } = scrape(request.headers.accept);
    const headers = { 'content-type': type };
    if (!/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) {
      response.writeHead(200, headers).end(body);
      return;
    }
    builtins.zlib().gzip(body, (error, packed) => {
      if (error !== null) response.writeHead(200, headers).end(body);
      else response.writeHead(200, { ...headers, 'content-encoding': 'gzip' }).end(packed);
    });
  };
}
