/** Rules about a node cache that runs alongside the cluster's DNS. */
import { parseAddress } from '../../../server/base/ip.ts';
import { absoluteName, expandZone } from '../../../server/corefile/zones.ts';
import type { Directive } from '../../../server/corefile/corefile-tree.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';
import type { Aim, LintRule } from '../lint-rule.ts';
import type { LintedBlock, LintedCorefile, Subject } from '../subject.ts';
import { forwardTargets } from '../upstreams.ts';

const bypassed: LintRule = {
  code: 'CF23',
  severity: 'warning',
  summary: 'zones and hosts in the cluster’s CoreDNS that node-cache bypasses',
  find(subject, tell) {
    const around = goesAround(subject);
    if (around === null) return;
    const caches = subject.corefiles.filter(({ role }) => role === 'node-cache');
    const local = caches
      .flatMap(({ blocks }) => blocks.flatMap(({ zones }) => zones))
      .filter((zone) => zone !== '.');
    const isLocal = (name: string): boolean => local.some((zone) => isWithin(name, zone));
    const hasHosts = rootsOf(caches).some((block) => block.has('hosts'));
    const servers = subject.corefiles.filter(({ role }) => role === 'server');
    const past = (what: string, at: Aim, remedy: string): void =>
      tell({
        at,
        text: `node-cache sends ${what} to ${around}, bypassing this`,
        hint: 'Pods on nodes with node-cache get different answers than pods on other nodes.',
        remedy,
      });
    for (const block of servers.flatMap(({ blocks }) => blocks)) {
      for (const { zone, at } of ownZones(block)) {
        const isCluster = block
          .directives('kubernetes')
          .some(({ args }) => args.some(({ text }) => `${text.replace(/\.$/, '')}.` === zone));
        if (isLocal(zone) || isCluster || /(^|\.)(in-addr|ip6)\.arpa\.$/.test(zone)) continue;
        past(
          `'${zone.replace(/(.)\.$/, '$1')}'`,
          at,
          'Add a block for the zone to node-cache that forwards to cluster DNS (__PILLAR__CLUSTER__DNS__).',
        );
      }
    }
    if (hasHosts) return;
    for (const directive of rootsOf(servers).flatMap((block) => block.directives('hosts'))) {
      const missed = missedHosts(directive, isLocal);
      if (missed !== null)
        past(missed.what, missed.at, 'Add hosts with the same names to node-cache, too.');
    }
  },
};

function rootsOf(corefiles: readonly LintedCorefile[]): readonly LintedBlock[] {
  return corefiles.flatMap(({ blocks }) => blocks).filter(({ zones }) => zones.includes('.'));
}

/**
 * The names in `hosts` that are not in any of node-cache's zones, or null if there are none. The pod's own hosts file
 * has no names that clients look up.
 */
function missedHosts(
  directive: Directive,
  isLocal: (name: string) => boolean,
): { readonly what: string; readonly at: Aim } | null {
  for (const line of directive.block ?? []) {
    if (parseAddress(line.name.text) === null) continue;
    const names = line.args.map(({ text }) => text.toLowerCase().replace(/(.)\.$/, '$1'));
    const name = names.find((each) => !isLocal(absoluteName(each)));
    if (name !== undefined) return { what: `'${name}'`, at: line };
  }
  const [file, ...words] = directive.args.map(({ text }) => text);
  if (file === undefined || file === '/etc/hosts') return null;
  const zones = words.flatMap((word) => expandZone(word) ?? []);
  if (zones.length > 0 && zones.every(isLocal)) return null;
  return { what: `the names of ${file}`, at: directive };
}

/**
 * The upstream that the node cache uses for names outside the cluster. This is a file, or a different upstream from the
 * one used for the cluster's names. Null if it is or may be the cluster's DNS.
 */
function goesAround({ corefiles }: Subject): string | null {
  for (const { blocks, role } of corefiles) {
    if (role !== 'node-cache') continue;
    const targets = (block: LintedBlock): readonly string[] =>
      forwardTargets(block).map(({ text }) => text);
    const [to = null] = blocks.filter(({ zones }) => zones.includes('.')).flatMap(targets);
    const ofCluster = blocks.filter(({ zones }) => !zones.includes('.')).flatMap(targets);
    if (to?.startsWith('/') === true) return to;
    if (to !== null && ofCluster.length > 0 && !ofCluster.includes(to)) return to;
  }
  return null;
}

/** The zones for which a block has special answers. The root zone counts only if it has a `forward`. */
function ownZones(block: LintedBlock): readonly { readonly zone: string; readonly at: Aim }[] {
  const zones = block.zones
    .filter((zone) => zone !== '.')
    .map((zone) => ({ zone, at: block.block }));
  if (!block.zones.includes('.')) return zones;
  const stubs = block.directives('forward').flatMap((directive) => {
    const from = directive.args[0]?.text.toLowerCase() ?? '.';
    return from === '.' ? [] : [{ zone: `${from.replace(/\.$/, '')}.`, at: directive }];
  });
  return [...zones, ...stubs];
}

export const nodeCacheRules: readonly LintRule[] = [bypassed];
