/**
 * Rules about `hosts`, `file` and `etcd`, which may be the only plugin that answers for a zone. `auto` passes on all
 * zones for which it finds no file.
 */
import { expandZone } from '../../../server/corefile/zones.ts';
import { blockRule, type LintRule } from '../lint-rule.ts';
import { lineOf } from '../subject.ts';
import { coreVersionOf, isBefore } from '../target.ts';

/** Plugins further down the chain that would answer. */
const behind: Readonly<Record<string, readonly string[]>> = {
  hosts: ['kubernetes', 'file', 'auto', 'secondary', 'etcd', 'forward'],
  file: ['auto', 'secondary', 'etcd', 'forward'],
  etcd: ['forward'],
};

const takesAll: LintRule = blockRule({
  code: 'CF05',
  severity: 'error',
  summary: 'hosts, file or etcd serves the root zone without fallthrough',
  find(block, tell) {
    for (const [name, others] of Object.entries(behind)) {
      const next = others.find((each) => block.has(each));
      if (next === undefined) continue;
      for (const directive of block.directives(name)) {
        if (lineOf(directive, 'fallthrough') !== null) continue;
        // hosts and file have FILE [ZONES…], and the others only have zones.
        const words = directive.args.slice(name === 'hosts' || name === 'file' ? 1 : 0);
        const zones = words.flatMap(({ text }) => expandZone(text) ?? []);
        const all = zones.length === 0 ? block.zones : zones;
        if (!all.includes('.')) continue;
        tell({
          at: directive.at,
          text: `every name that ${name} does not have gets ${name === 'hosts' ? 'SERVFAIL' : 'NXDOMAIN'}, and ${next} is never queried`,
          hint: `${name} answers for the whole root zone here, and has no fallthrough.`,
          remedy: `Add fallthrough, or list the zones that ${name} serves.`,
          fix: { kind: 'property', directive, text: 'fallthrough' },
        });
      }
    }
  },
});

const leakingTypes: LintRule = blockRule({
  code: 'CF30',
  ofCore: true,
  severity: 'warning',
  summary: 'hosts with fallthrough in CoreDNS 1.14.5 and 1.14.6',
  find(block, tell, { target }) {
    const version = coreVersionOf(target);
    if (version === null || isBefore(version, '1.14.5') || !isBefore(version, '1.14.7')) return;
    for (const directive of block.directives('hosts')) {
      const line = lineOf(directive, 'fallthrough');
      if (line === null || !block.has('forward')) continue;
      tell({
        at: line.name,
        text: `queries other than A and AAAA for names in hosts go to the upstream (CoreDNS ${version})`,
        hint: 'TXT, HTTPS and other queries for an overridden name get its real owner’s answer, or NXDOMAIN. Strict clients then treat the name as missing.',
        remedy:
          'Upgrade to 1.14.7, which answers NODATA again unless fallthrough_unsupported is set.',
      });
    }
  },
});

export const hostsRules: readonly LintRule[] = [takesAll, leakingTypes];
