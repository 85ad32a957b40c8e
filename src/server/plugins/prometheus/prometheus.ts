/** `prometheus`: query metrics, and the page that shows all metrics. */
import { andThen, isLater } from '../../base/maybe.ts';
import { optional } from '../../corefile/positions.ts';
import { flag, setting, type PropertySchema } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { hostPort, word } from '../../corefile/word-values.ts';

import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import type { Reply } from '../../wire/reply.ts';
import { Enabled } from './enabled.ts';
import { Meters, RouteMeters, sizeOf, slotOf } from './meters.ts';
import { readWebConfig } from './web-config.ts';

const address = hostPort('ADDRESS');

const config = setting('tls', word('CONFIGFILE'), {
  help: 'serve HTTPS, configured by a file in the Prometheus exporter format',
});

const tls: PropertySchema<string | null> = {
  ...config,
  take(line, before) {
    if (before !== null) line.refuse('tls block already specified');
    return config.take(line, before);
  },
};

const syntax = directive({
  name: 'prometheus',
  summary: 'counts queries and serves all metrics over HTTP',
  repeat: 'once',
  args: {
    address: optional(address, {
      default: { host: 'localhost', port: 9153 },
      help: 'listen address of `/metrics`; blocks with the same address share it',
    }),
  },
  properties: {
    runtimeMetrics: flag('runtime_metrics', {
      help: 'accepted for compatibility; runtime metrics are always reported',
    }),
    tls,
  },
});

/** Counts every query to its block in the worker. The control thread serves the metrics of all threads. */
export const prometheus: Plugin = definePlugin({
  syntax,
  operational: true,
  async control(options, context) {
    const secure =
      options.tls === null ? undefined : await readWebConfig(context.path(options.tls));
    const at = address.print(options.address);
    context.http(at, '/metrics', context.sendMetrics, secure);
    const enabled = context.keep('prometheus/enabled', () => new Enabled(context.metrics));
    const releases: (() => void)[] = [];
    for (const server of context.servers) {
      for (const zone of context.zones) {
        for (const name of context.links)
          releases.push(enabled.hold(server, zone, context.view, name));
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
    const count = (reply: Reply, asked: CountedQuery): Reply => {
      const size = sizeOf(reply, asked.questionEnd);
      const tookMs = clock.now() - asked.begun;
      asked.counts.count(asked.slot, asked.size, asked.dnssecOk, reply, size, tookMs);
      return reply;
    };
    const now = new CountedQuery();
    const spare: CountedQuery[] = [];
    const countLater = (reply: Reply, asked: CountedQuery): Reply => {
      if (spare.length < SPARE_MAX) spare.push(asked);
      return count(reply, asked);
    };
    return (query) => {
      const counts = meters.of(query.route);
      // Internal lookups have no arrival time, so their duration is measured from here.
      const begun = query.depth > 0 || query.proto === 'internal' ? clock.now() : query.arrived;
      // Read this now, because links after this one may rename the query or change its flags before there is a reply.
      const { questionEnd, dnssecOk } = query;
      const slot = slotOf(query);
      const size = query.end - query.start;
      const reply = next(query);
      if (!isLater(reply))
        return count(reply, now.of(counts, slot, size, dnssecOk, questionEnd, begun));
      const asked = spare.pop() ?? new CountedQuery();
      return andThen(reply, countLater, asked.of(counts, slot, size, dnssecOk, questionEnd, begun));
    };
  },
});

/** Maximum number of reusable objects for counted queries. */
const SPARE_MAX = 1024;

class CountedQuery {
  counts!: RouteMeters;
  slot = 0;
  size = 0;
  dnssecOk = false;
  questionEnd = 0;
  begun = 0;

  of(
    counts: RouteMeters,
    slot: number,
    size: number,
    dnssecOk: boolean,
    questionEnd: number,
    begun: number,
  ): this {
    this.counts = counts;
    this.slot = slot;
    this.size = size;
    this.dnssecOk = dnssecOk;
    this.questionEnd = questionEnd;
    this.begun = begun;
    return this;
  }
}
