/** `acl`: decides which queries are answered, by client address and query type. */
import { zones } from '../../corefile/positions.ts';
import { lines } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import type { Counter, Registry } from '../../metrics/registry.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { EDE, RCODE } from '../../wire/iana.ts';
import type { Query, Route } from '../../transport/query.ts';
import { silence, type ExtendedError, type Reply } from '../../wire/reply.ts';
import { Nets } from '../../base/nets.ts';
import { readPolicy, type AclAction, type AclPolicy } from './acl-policy.ts';
import { perRoute } from '../../engine/contract/per-route.ts';

const syntax = directive({
  name: 'acl',
  summary: 'allows or denies queries by client address and type',
  repeat: 'gather',
  args: { zones: zones({ help: 'zones the rules apply to' }) },
  properties: {
    policies: lines('*', 'allow|block|filter|drop [type TYPE…|*] [net NET…|*]', readPolicy, {
      help: '`allow` passes the query on, `block` replies with REFUSED, `filter` replies without records, and `drop` sends no reply; the first matching rule applies, and if none matches, the next `acl` is checked',
    }),
  },
});

interface AclRule {
  readonly zones: ZoneMatch;
  readonly policies: readonly {
    readonly action: AclAction;
    readonly types: AclPolicy['types'];
    readonly nets: Nets | null;
  }[];
}

const blocked: readonly ExtendedError[] = [{ code: EDE.BLOCKED, text: '' }];
const filtered: readonly ExtendedError[] = [{ code: EDE.FILTERED, text: '' }];

/** Answers, refuses or drops a query by its type and client address, before any later plugin sees it. */
export const acl: Plugin = definePlugin({
  syntax,
  setup(options, context, next) {
    const { writer } = context;
    const rules: readonly AclRule[] = options.map((use) => ({
      zones: new ZoneMatch(use.zones),
      policies: use.policies.map(({ action, types, nets }) => ({
        action,
        types,
        nets: nets === null ? null : new Nets(nets),
      })),
    }));
    const counters = new AclCounters(context.metrics);
    const written = (query: Query, rcode: number, errors: readonly ExtendedError[]): Reply => {
      writer.reply(query, 0);
      return writer.finish(rcode, 'acl').with({ errors });
    };
    return (query) => {
      for (const rule of rules) {
        const zone = rule.zones.find(query);
        if (zone === null) continue;
        const action = decide(rule, query);
        if (action === 'allow') break;
        if (action === null) continue;
        counters.stopped(action, query.route, zone);
        if (action === 'drop') return silence;
        return action === 'block'
          ? written(query, RCODE.REFUSED, blocked)
          : written(query, RCODE.NOERROR, filtered);
      }
      counters.allowed(query.route);
      return next(query);
    };
  },
});

function decide({ policies }: AclRule, { type, family, peer, peerAt }: Query): AclAction | null {
  for (const { action, types, nets } of policies) {
    if (types !== null && !types.has(type)) continue;
    if (nets === null || nets.holds(peer, peerAt, family === 4 ? 4 : 16)) return action;
  }
  return null;
}

/** Counters whose handles are created once per route. */
class AclCounters {
  readonly #byAction;
  readonly #allowed: (route: Route) => Counter;
  readonly #stopped = perRoute(() => new Map<string, Counter>());

  constructor(metrics: Registry) {
    const labels = ['server', 'zone', 'view'] as const;
    this.#byAction = {
      block: metrics.counter(
        'coredns_acl_blocked_requests_total',
        'Counter of DNS requests being blocked.',
        labels,
      ),
      filter: metrics.counter(
        'coredns_acl_filtered_requests_total',
        'Counter of DNS requests being filtered.',
        labels,
      ),
      drop: metrics.counter(
        'coredns_acl_dropped_requests_total',
        'Counter of DNS requests being dropped.',
        labels,
      ),
    };
    const allowed = metrics.counter(
      'coredns_acl_allowed_requests_total',
      'Counter of DNS requests being allowed.',
      ['server', 'view'],
    );
    this.#allowed = perRoute(({ server, view }) => allowed.with(server, view));
  }

  allowed(route: Route): void {
    this.#allowed(route).add(1);
  }

  stopped(action: Exclude<AclAction, 'allow'>, route: Route, zone: string): void {
    const { server, view } = route;
    const known = this.#stopped(route);
    const key = `${action} ${zone}`;
    let counter = known.get(key);
    if (counter === undefined) {
      counter = this.#byAction[action].with(server, zone, view);
      known.set(key, counter);
    }
    counter.add(1);
  }
}
