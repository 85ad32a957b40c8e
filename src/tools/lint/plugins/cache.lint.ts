/** Rules about `cache`. */
import type { Syntax } from '../../../server/corefile/syntax.ts';
import { blockRule, corefileRule, type LintRule } from '../lint-rule.ts';
import { lineOf, type LintedBlock } from '../subject.ts';
import { coreVersionOf, isBefore } from '../target.ts';
import { readOptions, type syntax } from '../../../server/plugins/cache/cache-options.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';

type CacheSyntax = typeof syntax;

const poisonedStale: LintRule = blockRule({
  code: 'CF14',
  ofCore: true,
  severity: 'warning',
  summary: 'serve_stale serves cached SERVFAIL before CoreDNS 1.14.4',
  find(block, tell, { target }) {
    const version = coreVersionOf(target);
    if (version === null || !isBefore(version, '1.14.4')) return;
    for (const { given, directive } of block.uses<CacheSyntax>('cache')) {
      const { stale, servfailMs } = readOptions(given);
      if (stale?.mode !== 'immediate' || servfailMs === 0) continue;
      tell({
        at: lineOf(directive, 'serve_stale') ?? directive,
        text: `a single SERVFAIL is served for as long as stale answers (CoreDNS ${version})`,
        hint: 'A cached failure counts as newer than the good answer and is served stale instead.',
        remedy: 'Add: servfail 0s, or write serve_stale 1h verify, or upgrade to 1.14.4.',
        fix: { kind: 'property', directive, text: 'servfail 0s' },
      });
    }
  },
});

/** The zones served by the block's kubernetes, without reverse zones. */
function clusterZones(block: LintedBlock): {
  readonly zones: readonly string[];
  readonly ttl: number;
} {
  const [use] = block.uses<Syntax>('kubernetes');
  const given = (use?.given ?? {}) as { readonly zones?: readonly string[]; readonly ttl?: number };
  const zones = (given.zones ?? []).filter((zone) => !/(in-addr|ip6)\.arpa\.$/.test(zone));
  return { zones, ttl: given.ttl ?? 0 };
}

const longDenial: LintRule = blockRule({
  code: 'CF15',
  severity: 'warning',
  summary: 'missing cluster names are cached for a long time',
  find(block, tell) {
    const { zones, ttl } = clusterZones(block);
    for (const { given, directive } of block.uses<CacheSyntax>('cache')) {
      const options = readOptions(given);
      const covered = zones.find(
        (zone) =>
          options.zones.some((each) => isWithin(zone, each)) &&
          !options.disable.some(
            ({ half, zones: off }) => half === 'denial' && off.some((each) => isWithin(zone, each)),
          ),
      );
      if (covered === undefined) continue;
      // The cluster zone's SOA has the TTL set in kubernetes, which also limits negative caching.
      const seconds = Math.max(options.denial.minSeconds, Math.min(options.denial.maxSeconds, ttl));
      if (seconds < 30) continue;
      const zone = covered.replace(/\.$/, '');
      tell({
        at: lineOf(directive, 'denial') ?? directive,
        text: `a Service that was queried before it existed stays unknown for ${seconds} s`,
        severity: seconds > 30 ? 'warning' : 'note',
        hint: `cache stores negative answers for ${zone} for up to ${options.denial.maxSeconds} s, while kubernetes has ttl ${ttl}.`,
        remedy: `Add: disable denial ${zone} (kubernetes answers from memory anyway), or denial 9984 5.`,
        fix: { kind: 'property', directive, text: `disable denial ${zone}` },
      });
    }
  },
});

const addedUp: LintRule = corefileRule({
  code: 'CF16',
  severity: 'warning',
  summary: 'cluster answers outlive their TTL, and cache times add up',
  find(corefile, tell) {
    for (const block of corefile.blocks) {
      const { zones } = clusterZones(block);
      const inFront = corefile.role === 'node-cache' && !block.zones.includes('.');
      if (zones.length === 0 && !inFront) continue;
      for (const { given, directive } of block.uses<CacheSyntax>('cache')) {
        const options = readOptions(given);
        const covers = (zone: string): boolean =>
          options.zones.some((each) => isWithin(zone, each)) &&
          !options.disable.some(
            ({ half, zones: off }) =>
              half === 'success' && off.some((each) => isWithin(zone, each)),
          );
        if (!inFront && !zones.some(covers)) continue;
        const line = options.keepTtl
          ? 'keepttl'
          : options.success.minSeconds > 30
            ? 'success'
            : options.stale === null || !inFront
              ? null
              : 'serve_stale';
        if (line === null) continue;
        const why: Readonly<Record<string, string>> = {
          keepttl:
            'keepttl sends the full TTL each time, so every downstream cache starts it again',
          success: `answers are cached for at least ${options.success.minSeconds} s, regardless of their TTL`,
          serve_stale: 'addresses of deleted pods are served while cluster DNS is unavailable',
        };
        tell({
          at: lineOf(directive, line) ?? directive,
          text: why[line]!,
          hint: 'A client may use an old pod or service address for the sum of all cache times on the path: node, cluster, runtime.',
          remedy: "Remove it for the cluster's zone; for other zones it may stay.",
        });
      }
    }
  },
});

export const cacheRules: readonly LintRule[] = [poisonedStale, longDenial, addedUp];
