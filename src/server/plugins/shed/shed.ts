/**
 * `shed`: counts the datagrams lost at a UDP socket that cannot keep up. Nothing accumulates there, even without the
 * directive.
 */
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

const syntax = directive({
  name: 'shed',
  summary:
    'counts datagrams lost because the server is overloaded; load is shed even without this directive',
  repeat: 'once',
  unread: ['braces'],
});

/**
 * Exports existing counts of the UDP listeners under CoreDNS's name. It changes no answers, but appears among the
 * enabled plugins.
 */
export const shed: Plugin = definePlugin({
  syntax,
  setup(_options, { servers, metrics, counters, onStop }, next) {
    const family = metrics.counter(
      'coredns_shed_dropped_total',
      'Counter of queries and responses dropped, per server, by reason.',
      ['server', 'reason'],
    );
    for (const server of servers.filter((each) => each.startsWith('dns://'))) {
      const { lost, dropped } = counters(server)('udp');
      onStop(lost.countAlso(family.with(server, 'query')));
      onStop(dropped.countAlso(family.with(server, 'response')));
    }
    return next;
  },
});
