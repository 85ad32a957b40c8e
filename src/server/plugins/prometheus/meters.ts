/** Query metrics. */
import { sizeBuckets, timeBuckets } from '../../metrics/buckets.ts';
import type { Counter, Family, Histogram, Registry } from '../../metrics/registry.ts';
import { rcodeName, TYPE, typeName } from '../../wire/iana.ts';
import type { Query, Route } from '../../transport/query.ts';
import { silence, type Reply } from '../../wire/reply.ts';
import { perRoute } from '../../engine/contract/per-route.ts';

/** Types that have their own label value; all others are counted as `other`. */
const types: readonly number[] = [
  TYPE.A,
  TYPE.AAAA,
  TYPE.CNAME,
  TYPE.DNSKEY,
  TYPE.DS,
  TYPE.MX,
  TYPE.NSEC,
  TYPE.NSEC3,
  TYPE.NS,
  TYPE.PTR,
  TYPE.RRSIG,
  TYPE.SOA,
  TYPE.SRV,
  TYPE.TXT,
  TYPE.HTTPS,
  TYPE.SVCB,
  TYPE.IXFR,
  TYPE.AXFR,
  TYPE.ANY,
];
const OTHER = types.length;
const typeLabels: readonly string[] = [...types.map(typeName), 'other'];

/** Maps types to indexes in `typeLabels`. */
const slots = new Uint8Array(256).fill(OTHER);
types.forEach((type, slot) => {
  slots[type] = slot;
});

const protoLabels = ['udp', 'tcp'] as const;

export class Meters {
  readonly requests: Family<
    readonly ['server', 'zone', 'view', 'proto', 'family', 'type'],
    Counter
  >;
  readonly durations: Family<readonly ['server', 'zone', 'view'], Histogram>;
  readonly requestSizes: Family<readonly ['server', 'zone', 'view', 'proto'], Histogram>;
  readonly responseSizes: Family<readonly ['server', 'zone', 'view', 'proto'], Histogram>;
  readonly dnssecOk: Family<readonly ['server', 'zone', 'view'], Counter>;
  readonly responses: Family<readonly ['server', 'zone', 'view', 'rcode', 'plugin'], Counter>;

  constructor(metrics: Registry) {
    this.requests = metrics.counter(
      'coredns_dns_requests_total',
      'Counter of DNS requests made per zone, protocol and family.',
      ['server', 'zone', 'view', 'proto', 'family', 'type'],
    );
    this.durations = metrics.histogram(
      'coredns_dns_request_duration_seconds',
      'Histogram of the time (in seconds) each request took per zone.',
      ['server', 'zone', 'view'],
      timeBuckets,
    );
    this.requestSizes = metrics.histogram(
      'coredns_dns_request_size_bytes',
      'Size of the request in bytes.',
      ['server', 'zone', 'view', 'proto'],
      sizeBuckets,
    );
    this.responseSizes = metrics.histogram(
      'coredns_dns_response_size_bytes',
      'Size of the returned response in bytes, names compressed.',
      ['server', 'zone', 'view', 'proto'],
      sizeBuckets,
    );
    this.dnssecOk = metrics.counter(
      'coredns_dns_do_requests_total',
      'Counter of DNS requests with DO bit set per zone.',
      ['server', 'zone', 'view'],
    );
    this.responses = metrics.counter(
      'coredns_dns_responses_total',
      'Counter of response status codes.',
      ['server', 'zone', 'view', 'rcode', 'plugin'],
    );
  }

  readonly of: (route: Route) => RouteMeters = perRoute((route) => new RouteMeters(this, route));
}

export function slotOf({ overStream, family, type }: Query): number {
  const known = type < slots.length ? slots[type]! : OTHER;
  return ((overStream ? 2 : 0) + (family === 4 ? 0 : 1)) * typeLabels.length + known;
}

interface PluginCounter {
  readonly plugin: string;
  readonly counter: Counter;
}

/**
 * The counters for one route, with a handle for each label set that is created on first use. Counting reads no labels
 * and allocates nothing.
 */
export class RouteMeters {
  readonly #meters: Meters;
  readonly #labels: readonly [string, string, string];
  readonly #duration: Histogram;
  readonly #requests: (Counter | undefined)[];
  readonly #requestSizes: (Histogram | undefined)[] = [undefined, undefined];
  readonly #responseSizes: (Histogram | undefined)[] = [undefined, undefined];
  #dnssecOk: Counter | null = null;
  /** Indexed by rcode. Each list is short, because few plugins answer with the same one. */
  readonly #responses: PluginCounter[][] = [];

  constructor(meters: Meters, { server, zone, view }: Route) {
    this.#meters = meters;
    this.#labels = [server, zone, view];
    this.#duration = meters.durations.with(...this.#labels);
    this.#requests = Array.from({ length: 4 * typeLabels.length }, () => undefined);
  }

  /** @param slot as returned by `slotOf` */
  count(
    slot: number,
    size: number,
    dnssecOk: boolean,
    reply: Reply,
    replySize: number,
    elapsedMs: number,
  ): void {
    (this.#requests[slot] ??= this.#request(slot)).add(1);
    if (dnssecOk) (this.#dnssecOk ??= this.#meters.dnssecOk.with(...this.#labels)).add(1);
    this.#duration.observe(elapsedMs / 1000);
    const proto = slot < 2 * typeLabels.length ? 0 : 1;
    (this.#requestSizes[proto] ??= this.#sized(this.#meters.requestSizes, proto)).observe(size);
    (this.#responseSizes[proto] ??= this.#sized(this.#meters.responseSizes, proto)).observe(
      replySize,
    );
    this.#response(reply.rcode, reply.plugin).add(1);
  }

  #request(slot: number): Counter {
    const type = typeLabels[slot % typeLabels.length]!;
    const rest = Math.floor(slot / typeLabels.length);
    return this.#meters.requests.with(
      ...this.#labels,
      protoLabels[rest >> 1]!,
      rest % 2 === 0 ? '1' : '2',
      type,
    );
  }

  #sized(
    family: Family<readonly ['server', 'zone', 'view', 'proto'], Histogram>,
    proto: number,
  ): Histogram {
    return family.with(...this.#labels, protoLabels[proto]!);
  }

  #response(rcode: number, plugin: string): Counter {
    while (this.#responses.length <= rcode) this.#responses.push([]);
    const known = this.#responses[rcode]!;
    for (let i = 0; i < known.length; i++)
      if (known[i]!.plugin === plugin) return known[i]!.counter;
    const counter = this.#meters.responses.with(...this.#labels, rcodeName(rcode), plugin);
    known.push({ plugin, counter });
    return counter;
  }
}

/** Returns the size in bytes of the message as sent, excluding the client's OPT, or 0 if nothing is sent. */
export function sizeOf(reply: Reply, questionEnd: number): number {
  if (reply === silence) return 0;
  return reply.bare ? questionEnd : reply.size;
}
