/** Rules about a node cache beside the cluster's DNS. */
import type { LintRule } from '../rule.ts';
import type { LintedBlock, Subject } from '../subject.ts';

const bypassed: LintRule = {
  code: 'CF23',
  severity: 'warning',
  summary: 'zones and hosts that only the cluster’s CoreDNS knows, past which node-cache asks',
  find(subject, tell) {
    const around = goesAround(subject);
    if (around === null) return;
    const local = new Set(
      subject.corefiles
        .filter(({ role }) => role === 'node-cache')
        .flatMap(({ blocks }) => blocks.flatMap(({ zones }) => zones)),
    );
    for (const { blocks, role } of subject.corefiles) {
      if (role !== 'server') continue;
      for (const block of blocks) {
        for (const { zone, at } of ownZones(block)) {
          const isCluster = block
            .directives('kubernetes')
            .some(({ args }) => args.some(({ text }) => `${text.replace(/\.$/, '')}.` === zone));
          if (local.has(zone) || isCluster || /(^|\.)(in-addr|ip6)\.arpa\.$/.test(zone)) continue;
          tell({
            at,
            text: `node-cache sends '${zone.replace(/(.)\.$/, '$1')}' to ${around}, past this`,
            hint: 'Pods on nodes with node-cache get other answers than those without.',
            remedy:
              'Add a block for the zone to node-cache that forwards to cluster DNS (__PILLAR__CLUSTER__DNS__).',
          });
        }
      }
    }
  },
};

/**
 * The upstream to which the node cache forwards names outside the cluster; null if that is the
 * cluster's DNS.
 */
function goesAround({ corefiles }: Subject): string | null {
  for (const { blocks, role } of corefiles) {
    if (role !== 'node-cache') continue;
    const root = blocks.find(({ zones }) => zones.includes('.'));
    const to = root?.directives('forward')[0]?.args[1]?.text ?? null;
    if (to?.startsWith('/') === true) return to;
  }
  return null;
}

/**
 * The zones for which a block has special answers; the root zone only if `hosts` has names in it.
 */
function ownZones(block: LintedBlock): readonly {
  readonly zone: string;
  readonly at: Parameters<Parameters<LintRule['find']>[1]>[0]['at'];
}[] {
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

/** All rules about node caches. */
export const nodeCacheRules: readonly LintRule[] = [bypassed];
