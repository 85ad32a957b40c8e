/** `leakguard`: keeps names that cannot exist outside the cluster from being forwarded. */
import { holdsAt } from '../../base/copy-bytes.ts';
import { rest } from '../../corefile/positions.ts';
import { flag, list, setting, zoneList } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { choice, domainName, integer } from '../../corefile/word-values.ts';
import { TopKeys } from '../../metrics/top-keys.ts';
import { ClientPrefix } from '../../engine/contract/client-prefix.ts';
import { perRoute } from '../../engine/contract/per-route.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { EDE, FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { parseName, ROOT, type WireName } from '../../wire/name.ts';
import type { Query, Route } from '../../transport/query.ts';
import type { ExtendedError, Reply } from '../../wire/reply.ts';
import { SECTION, type Section } from '../../wire/writer.ts';
import { ZoneDirectory } from '../../zone/zone-directory.ts';
import {
  localZones,
  namesInside,
  type InsideName,
  type LocalZone,
  type Reason,
} from './local-zones.ts';
import { labelsOf, reverseNameIn, splitAtDots, teredoClient } from './other-spellings.ts';

const syntax = directive({
  name: 'leakguard',
  summary:
    'keeps queries for cluster names, single labels and private reverse names from reaching upstreams',
  repeat: 'once',
  args: {
    zones: rest(domainName('ZONE'), {
      help: 'zones that exist only in the cluster (default cluster.local)',
    }),
  },
  properties: {
    allow: list(
      'allow',
      choice('single_labels', 'private_reverse', 'special_names', 'impossible_names'),
      {
        help: 'kinds of names to forward anyway',
      },
    ),
    search: zoneList('search', {
      isStrict: true,
      help: 'the nodes’ search domains; cluster names followed by one of these domains are blocked too',
    }),
    except: zoneList('except', {
      isStrict: true,
      help: 'zones to forward anyway',
    }),
    ttlSeconds: setting('ttl', integer('SECONDS', { min: 0, max: 604_800 }), {
      default: 300,
      help: 'negative TTL',
    }),
    reportOnly: flag('report_only', {
      help: 'forward everything, and only count the queries that would be blocked',
    }),
  },
});

const infrastructure: ReadonlySet<number> = new Set([TYPE.NS, TYPE.SOA, TYPE.DS, TYPE.DNSKEY]);
/** As in the empty zones in RFC 6303 section 3. */
const mailbox = parseName('nobody.invalid.');

/** Answers for local zones as RFC 6303 requires, before any forwarding plugin is reached. */
export const leakguard: Plugin = definePlugin({
  syntax,
  setup: (options, context, next) => new LeakGuard(options, context, next).link,
});

class LeakGuard {
  readonly #options: Options<typeof syntax>;
  readonly #context: WorkerContext;
  readonly #next: Next;
  readonly #zones = new ZoneDirectory<LocalZone>();
  readonly #except: ZoneMatch;
  readonly #inside: readonly InsideName[];
  readonly #singleLabels: boolean;
  readonly #impossible: boolean;
  readonly #errors: Readonly<Record<Reason, readonly ExtendedError[]>>;
  readonly #stopped: (route: Route, reason: Reason) => void;
  readonly #client = new ClientPrefix(32, 128);
  readonly #offenders: TopKeys;

  constructor(options: Options<typeof syntax>, context: WorkerContext, next: Next) {
    this.#options = options;
    this.#context = context;
    this.#next = next;
    const clusters = options.zones.length === 0 ? ['cluster.local.'] : options.zones;
    const allowed = new Set(options.allow.map((word) => reasons[word]));
    // If two zones have the same name, the first one wins.
    for (const zone of localZones(clusters, options.search ?? [], allowed).toReversed())
      this.#zones.put(zone);
    this.#except = new ZoneMatch(options.except ?? []);
    this.#inside = namesInside(clusters);
    this.#singleLabels = !allowed.has('single_label');
    this.#impossible = !allowed.has('impossible_name');
    this.#errors = {
      cluster: because('cluster names are not sent to upstreams'),
      single_label: because('single labels are not sent to upstreams'),
      private_reverse: because('private addresses have no external names (RFC 6303)'),
      impossible_name: because('no top-level domain has this form'),
      special_name: because('special-use names are not sent to upstreams (RFC 6761)'),
    };
    const { metrics, clock } = context;
    this.#stopped = counter(context);
    this.#offenders = new TopKeys({
      metrics,
      clock,
      name: 'ndots_leakguard_top_clients',
      help: 'Recently blocked queries, for the ten clients with the most.',
      label: 'client',
      width: 16,
      print: this.#client.print,
    });
    context.onStop(() => this.#offenders.close());
  }

  readonly link: Next = (query) => {
    const { folded, nameLength, type } = query;
    if (this.#except.holds(query)) return this.#next(query);
    const zone = this.#zones.find(folded, nameLength);
    if (zone !== null) {
      const top = nameLength === zone.origin.length;
      // Whether the zone is signed depends on its public parent zone.
      if (top && type === TYPE.DS && zone.registered) return this.#next(query);
      return this.#stop(query, zone.reason, zone.origin, top);
    }
    if (nameLength > 1 && folded[0]! + 2 === nameLength) {
      return this.#singleLabels && !infrastructure.has(type)
        ? this.#stop(query, 'single_label', ROOT, false)
        : this.#next(query);
    }
    const inside = this.#insideOf(folded, nameLength);
    if (inside !== null)
      return this.#stop(query, inside.reason, folded.slice(inside.at, nameLength), false);
    if (this.#impossible && !isPossible(folded, nameLength))
      return this.#stop(query, 'impossible_name', ROOT, false);
    const meant = splitAtDots(folded, nameLength);
    const reason = meant === null ? null : this.#reasonFor(meant);
    return reason === null ? this.#next(query) : this.#stop(query, reason, ROOT, false);
  };

  /** Returns why this name is blocked, or null if it is an external name. */
  #reasonFor(name: WireName): Reason | null {
    if (this.#except.holdsName(name)) return null;
    const zone = this.#zones.find(name, name.length);
    return (zone ?? this.#insideOf(name, name.length))?.reason ?? null;
  }

  /**
   * Finds a blocked name inside one that has a suffix or a different spelling.
   * @returns the offset of its zone, and the reason
   */
  #insideOf(
    name: Uint8Array,
    length: number,
  ): { readonly at: number; readonly reason: Reason } | null {
    const at = this.#clusterNameIn(name, length);
    if (at >= 0) return { at, reason: 'cluster' };
    const reverse = reverseNameIn(name, length);
    if (reverse === null) return null;
    const { labels } = reverse;
    const zone = this.#privateZone(reverse.name);
    if (zone !== null)
      return { at: labels.at(1 - labelsOf(zone).length) ?? 0, reason: 'private_reverse' };
    const client = teredoClient(reverse.name);
    return client === null || this.#privateZone(client) === null
      ? null
      : { at: labels[1]!, reason: 'private_reverse' };
  }

  #privateZone(name: WireName): WireName | null {
    const zone = this.#zones.find(name, name.length);
    return zone?.reason === 'private_reverse' && !this.#except.holdsName(name) ? zone.origin : null;
  }

  /**
   * Returns where the cluster's zone starts in a longer name, or -1. Clients produce such names by appending their
   * search path to a cluster name (`backend.shop.svc.cluster.local.corp.example.`).
   */
  #clusterNameIn(name: Uint8Array, length: number): number {
    for (let at = 0; at < length - 1; at += name[at]! + 1)
      for (const { bytes, zoneAt } of this.#inside)
        if (at + bytes.length < length && holdsAt(name, at, bytes)) return at + zoneAt;
    return -1;
  }

  #stop(query: Query, reason: Reason, zone: WireName, top: boolean): ReturnType<Next> {
    this.#stopped(query.route, reason);
    const { bytes, length } = this.#client.read(query);
    this.#offenders.add(bytes, 0, length);
    return this.#options.reportOnly
      ? this.#next(query)
      : this.#answer(query, zone, top).with({ errors: this.#errors[reason] });
  }

  #answer(query: Query, zone: WireName, top: boolean): Reply {
    const { writer } = this.#context;
    writer.reply(query, FLAG.AA);
    if (!top) this.#writeSoa(SECTION.authority, zone);
    else if (query.type === TYPE.SOA) this.#writeSoa(SECTION.answer, zone);
    else if (query.type === TYPE.NS) {
      writer.named(SECTION.answer, zone, TYPE.NS, this.#options.ttlSeconds, zone);
    } else this.#writeSoa(SECTION.authority, zone);
    return writer.finish(top ? RCODE.NOERROR : RCODE.NXDOMAIN, 'leakguard');
  }

  #writeSoa(section: Section, zone: WireName): void {
    const { ttlSeconds } = this.#options;
    const numbers = [1, 3600, 1200, 604_800, ttlSeconds];
    this.#context.writer.soa(section, zone, ttlSeconds, zone, mailbox, numbers);
  }
}

const reasons = {
  single_labels: 'single_label',
  private_reverse: 'private_reverse',
  special_names: 'special_name',
  impossible_names: 'impossible_name',
} as const satisfies Record<string, Reason>;

function because(text: string): readonly ExtendedError[] {
  return [{ code: EDE.BLOCKED, text }];
}

/**
 * True if the last label may be a top-level domain, which starts with a letter followed by digits and hyphens (RFC 3696
 * section 2).
 */
function isPossible(name: Uint8Array, length: number): boolean {
  if (length === 1) return true;
  let last = 0;
  for (let at = 0; at < length - 1; at += name[at]! + 1) last = at;
  if (!isLetter(name[last + 1]!)) return false;
  for (let at = last + 2; at < length - 1; at++) {
    const byte = name[at]!;
    if (!isLetter(byte) && !(byte >= DIGIT && byte < DIGIT + 10) && byte !== HYPHEN) return false;
  }
  return true;
}

const DIGIT = 0x30;
const HYPHEN = 0x2d;
const LETTER = 0x61;

/** Expects a byte from a folded name. */
function isLetter(byte: number): boolean {
  return byte >= LETTER && byte < LETTER + 26;
}

function counter({ metrics }: WorkerContext): (route: Route, reason: Reason) => void {
  const stopped = metrics.counter(
    'ndots_leakguard_stopped_total',
    'Number of queries that were not sent to upstreams, by reason.',
    ['server', 'view', 'reason'],
  );
  const countersOf = perRoute(({ server, view }) => ({
    cluster: stopped.with(server, view, 'cluster'),
    single_label: stopped.with(server, view, 'single_label'),
    private_reverse: stopped.with(server, view, 'private_reverse'),
    special_name: stopped.with(server, view, 'special_name'),
    impossible_name: stopped.with(server, view, 'impossible_name'),
  }));
  return (route, reason) => countersOf(route)[reason].add(1);
}
