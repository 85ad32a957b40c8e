/** `secondary`: serves zones transferred from other servers. */
import { limit } from '../../base/limits.ts';
import { Problem } from '../../base/problem.ts';
import { zones } from '../../corefile/positions.ts';
import { custom, fallthrough, setting, type PropertySchema } from '../../corefile/properties.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import type { Refuse } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { byteSize, integer } from '../../corefile/word-values.ts';
import { expandZone } from '../../corefile/zones.ts';
import type { RemoteServer } from '../../transport/one-exchange.ts';
import type { TsigSigningKey } from '../../transport/tsig-keys.ts';
import type { NamedFiles } from '../../engine/contract/named-files.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { FLAG, RCODE } from '../../wire/iana.ts';
import { printName } from '../../wire/name.ts';
import { failure } from '../../wire/reply.ts';
import { algorithmOrWhy, makeKey, readKeyFile } from '../../zone/tsig-key.ts';
import { isServer, parseServer } from '../../zone/server-address.ts';
import type { PackedZone } from '../../zone/packed-zone.ts';
import { zoneLink, type ZoneLinkParts } from '../../zone/zone-link.ts';
import { ZONE_MEMORY, zoneShare } from '../../zone/zone-share.ts';
import type { FollowedZone } from './followed-zone.ts';
import { NotifyGate } from './notify-gate.ts';

const sizeLimit = { min: 1024, max: 2 ** 32 };
/** Each followed zone uses about 3 KiB in addition to its records. */
const membersLimit = limit({ default: 10_000, min: 1, max: 1_000_000 });
/** BIND runs ten transfers at a time, and sends 20 serial queries per second. */
const concurrentLimit = limit({ default: 32, min: 1, max: 1000 });

const syntax = directive({
  name: 'secondary',
  summary: 'serves zones transferred from other servers',
  repeat: 'gather',
  args: { zones: zones({ help: 'zones to transfer' }) },
  properties: {
    primaries: custom('transfer', 'from ADDRESS…', readPrimaries, {
      help: 'primaries, queried in order until a newer version is found',
    }),
    catalog: addingUp(
      custom('catalog', '[MEMBER-ZONES…]', readMemberZones, {
        help: 'treat the zones as catalogs (RFC 9432), and transfer the zones they list from the same primaries; if MEMBER-ZONES are given, only these zones and zones under them',
      }),
    ),
    key: custom('key', 'FILE|NAME SECRET [ALGORITHM]', readKey, {
      help: 'sign queries to primaries with this key (TSIG), and accept only replies signed with it. The key is a file with one key, as printed by `tsig-keygen`, or a name, a base64 secret and an algorithm (default hmac-sha256)',
    }),
    maxSize: setting('max_size', byteSize('SIZE', sizeLimit), {
      help: "maximum size of a zone; a larger version is rejected, and the previous one stays in use. Default: a quarter of the container's memory above 95 MiB (with a limit of 170 MiB, this is 18 MiB or some 600 000 records), or 1 GiB without a memory limit",
    }),
    maxMembers: setting('max_members', integer('COUNT', membersLimit), {
      default: membersLimit.default,
      help: 'number of zones that one catalog may list; a catalog with more is rejected',
    }),
    maxConcurrent: setting('max_concurrent', integer('COUNT', concurrentLimit), {
      default: concurrentLimit.default,
      help: 'number of simultaneous checks and transfers per primary; other zones wait',
    }),
    fallthrough: fallthrough({
      help: 'pass names without records to the next plugin; if ZONES are given, only names in these zones',
    }),
  },
  retired: { upstream: 'alias targets are always resolved by the full server' },
  check: ([first], at) =>
    first!.primaries === null
      ? [pluginProblem('secondary', at, 'secondary zones require a transfer from property')]
      : [],
  // As in CoreDNS, a zone is ignored until a primary is configured.
  warn: (all) =>
    all
      .filter(({ primaries }) => primaries === null)
      .map(({ at, zones: names }) =>
        pluginRemark(
          'secondary',
          at,
          `ignored because no primary is configured: ${names.join(' ')}`,
          {
            code: 'directive-warning',
            remedy: 'Write in braces: transfer from ADDRESS',
          },
        ),
      ),
});

export const secondary: Plugin = definePlugin({
  syntax,
  async control(all, context) {
    const options = withPrimaries(all);
    // Imported here because workers never need them.
    const { ZonePublisher } = await import('../../zone/zone-publisher.ts');
    const { zoneMetrics } = await import('../../zone/zone-reloader.ts');
    const own = await import('./followed-zone.ts');
    const { MemberZones } = await import('./member-zones.ts');
    const { clock, random, log } = context;
    const { PrimaryTurns } = await import('./primary-turns.ts');
    const { FailureLines } = await import('./failure-lines.ts');
    const failures = new FailureLines(clock, log);
    const metrics = {
      ...zoneMetrics(context.metrics),
      fallbacks: context.metrics.counter(
        'ndots_secondary_ixfr_fallbacks_total',
        'Number of failed IXFRs, after which the whole zone was requested.',
        ['zone'],
      ),
    };
    const queued = context.metrics.gauge(
      'ndots_secondary_waiting_zones',
      'Number of zones waiting for one of their primaries (max_concurrent).',
    );
    const most = Math.min(...options.map((one) => one.maxConcurrent));
    const turns = new PrimaryTurns(clock, most, queued);
    const sources = sourcesOf(options);
    const usual = zoneShare();
    const largest = Math.max(...options.map(({ maxSize }) => maxSize ?? usual));
    const { ZoneMemory } = await import('./zone-memory.ts');
    // Shared by all server blocks.
    const memory = context.keep('secondary/memory', () => {
      const bytes = context.metrics.gauge(
        'ndots_secondary_memory_bytes',
        'Memory used by served zones and incoming transfers, at most four times the largest max_size.',
      );
      return new ZoneMemory(bytes);
    });
    memory.allow(ZONE_MEMORY.times * largest);
    const publisher = context.replicated(
      keyOf(sources),
      (open) => new ZonePublisher(open, context.clock),
    );
    const allowed = new Map<string, readonly string[]>();
    for (const { zones: names, catalog } of options) {
      if (catalog === null) continue;
      for (const zone of names) allowed.set(zone, merged(allowed.get(zone), catalog));
    }
    const followed = new Map<string, FollowedZone>();
    const terms = new Map<string, Terms>();
    for (const { zones: names, key, maxSize } of options) {
      const found = signingKey(key, context);
      for (const zone of names) terms.set(zone, { key: found, maxBytes: maxSize ?? usual });
    }
    const follow = (zone: string, like: string): FollowedZone => {
      const primaries = sources.find((source) => source.zone === like)?.primaries ?? [];
      const accept = (packed: PackedZone): (() => void) => {
        const named = zone === like ? members.read(zone, packed) : null;
        return () => named !== null && members.apply(zone, named);
      };
      return new own.FollowedZone({
        ...terms.get(like)!,
        zone,
        primaries,
        turns,
        memory,
        publisher,
        clock,
        random,
        log,
        failures,
        metrics,
        accept,
      });
    };
    const fixed = new Set(sources.map(({ zone }) => zone));
    const mostMembers = Math.min(...options.map((one) => one.maxMembers));
    const members = new MemberZones({
      publisher,
      clock,
      log,
      fixed,
      allowed,
      most: mostMembers,
      follow,
    });
    for (const { zone } of sources) {
      if (!publisher.has(zone)) publisher.put(zone, null);
      followed.set(zone, follow(zone, zone));
    }
    context.onMessage((message) => {
      const { zone, from } = message as { zone: string; from: string };
      (followed.get(zone) ?? members.get(zone))?.notified(from);
    });
    context.onStart(() => {
      for (const zone of followed.values()) zone.start();
      // Zones that came from a catalog that a reload has removed.
      for (const zone of publisher.names)
        if (!followed.has(zone) && members.get(zone) === undefined) publisher.remove(zone);
    });
    context.onStop(() => {
      for (const zone of followed.values()) zone.stop();
      members.stop();
      failures.stop();
    });
  },

  setup(all, context, next) {
    const options = withPrimaries(all);
    const sources = sourcesOf(options);
    const refused = failure(RCODE.REFUSED, 'secondary');
    // Zones listed in catalogs use these primaries.
    const catalogs = new Set(options.flatMap((one) => (one.catalog === null ? [] : one.zones)));
    const ofCatalogs = {
      primaries: sources.filter(({ zone }) => catalogs.has(zone)).flatMap((one) => one.primaries),
    };
    const { writer, log, clock } = context;
    const gate = new NotifyGate({
      clock,
      pass: (zone, from) => context.post({ zone, from }),
      log: (line) => log.info(line),
    });
    context.onStop(() => gate.close());
    const parts: ZoneLinkParts = {
      plugin: 'secondary',
      key: keyOf(sources),
      fallthrough: options.flatMap((one) => one.fallthrough ?? []),
      notified(query, { origin }) {
        const zone = printName(origin);
        const { primaries } = sources.find((source) => source.zone === zone) ?? ofCatalogs;
        const { peer, peerAt, family, client: from } = query;
        if (
          query.nameLength !== origin.length ||
          !primaries.some((server) => isServer(server, peer, peerAt, family))
        ) {
          gate.dropped(zone, from);
          return refused;
        }
        gate.notified(zone, from);
        writer.reply(query, FLAG.AA);
        return writer.finish(RCODE.NOERROR, 'secondary');
      },
    };
    return zoneLink(parts, context, next);
  },
});

function readPrimaries(words: readonly Token[], refuse: Refuse): readonly RemoteServer[] {
  const [from, ...addresses] = words;
  if (from?.text !== 'from' || addresses.length === 0)
    return refuse('Wrong argument count or unexpected line ending', from?.place, {
      hint: 'Write: transfer from ADDRESS…',
    });
  return addresses.map(
    ({ text, place }) =>
      parseServer(text) ??
      refuse(`not an IP address: "${text}"`, place, {
        hint: 'Write an address, optionally with a port: 192.0.2.10, [2001:db8::1]:5300.',
      }),
  );
}

type MemberNames = readonly string[];

function readMemberZones(words: readonly Token[], refuse: Refuse): MemberNames {
  return words.flatMap(({ text, place }) => {
    const zones = text.includes(':') ? null : expandZone(text);
    return zones ?? refuse(`invalid catalog member zone ${JSON.stringify(text)}`, place);
  });
}

function addingUp(
  property: PropertySchema<MemberNames | null>,
): PropertySchema<MemberNames | null> {
  return {
    ...property,
    take(line, before) {
      return merged(before, property.take(line, before)!);
    },
  };
}

type KeyOption = { readonly file: string } | TsigSigningKey;

function readKey(words: readonly Token[], refuse: Refuse): KeyOption {
  const [first, secret, named] = words;
  if (first === undefined || words.length > 3)
    return refuse('Wrong argument count or unexpected line ending', undefined, {
      hint: 'Write: key FILE, or key NAME SECRET [ALGORITHM]',
    });
  if (secret === undefined) return { file: first.text };
  const key = makeKey(first.text, secret.text);
  if (typeof key === 'string') return refuse(key, secret.place);
  const algorithm = algorithmOrWhy(named?.text ?? DEFAULT_ALGORITHM);
  if (typeof algorithm === 'string') return refuse(algorithm, named?.place);
  return { ...key, algorithm };
}

const DEFAULT_ALGORITHM = 'hmac-sha256';

/** @throws Problem */
function signingKey(option: KeyOption | null, files: NamedFiles): TsigSigningKey | null {
  if (option === null || !('file' in option)) return option;
  const [key, ...more] = readKeyFile(option.file, 'plugin/secondary: ', files);
  if (key === undefined || more.length > 0)
    throw new Problem({
      code: 'tsig-key',
      text: `plugin/secondary: ${files.path(option.file)} has ${more.length === 0 ? 'no key' : `${more.length + 1} keys`}`,
      remedy: 'Put the key for queries to primaries in a separate file.',
    });
  const algorithm =
    key.algorithm ?? (algorithmOrWhy(DEFAULT_ALGORITHM) as TsigSigningKey['algorithm']);
  return { ...key, algorithm };
}

interface Terms {
  readonly key: TsigSigningKey | null;
  readonly maxBytes: number;
}

interface SecondaryZone {
  readonly zone: string;
  readonly primaries: readonly RemoteServer[];
}

function withPrimaries<T extends { readonly primaries: readonly RemoteServer[] | null }>(
  all: readonly T[],
): readonly (T & { readonly primaries: readonly RemoteServer[] })[] {
  return all.flatMap((one) =>
    one.primaries === null ? [] : [{ ...one, primaries: one.primaries }],
  );
}

function sourcesOf(
  options: readonly {
    readonly zones: readonly string[];
    readonly primaries: readonly RemoteServer[];
  }[],
): readonly SecondaryZone[] {
  const byZone = new Map<string, SecondaryZone>();
  for (const { zones: names, primaries } of options)
    for (const zone of names) byZone.set(zone, { zone, primaries });
  return [...byZone.values()];
}

/** Merges several lists for the same catalog; an empty list allows any zone. */
function merged(
  before: readonly string[] | null | undefined,
  more: readonly string[],
): readonly string[] {
  if (before === null || before === undefined) return more;
  return before.length === 0 || more.length === 0 ? [] : [...before, ...more];
}

function keyOf(sources: readonly SecondaryZone[]): string {
  return `secondary/${JSON.stringify(sources)}`;
}
