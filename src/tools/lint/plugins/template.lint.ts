/** Rules about `template`. */
import type { Directive } from '../../../server/corefile/corefile-tree.ts';
import { expandZone } from '../../../server/corefile/zones.ts';
import { blockRule, type LintRule } from '../lint-rule.ts';
import { lineOf, type LintedBlock } from '../subject.ts';

/** `template CLASS TYPE [ZONES…]` */
function shapeOf(
  { args }: Directive,
  block: LintedBlock,
): {
  readonly types: string;
  readonly zones: readonly string[];
} {
  const [, type, ...zones] = args.map(({ text }) => text);
  const named = zones.flatMap((zone) => expandZone(zone) ?? []);
  return {
    types: (type ?? 'ANY').toUpperCase(),
    zones: named.length === 0 ? block.zones : named,
  };
}

const others: readonly string[] = [
  'hosts',
  'kubernetes',
  'file',
  'auto',
  'secondary',
  'etcd',
  'forward',
];

/** Patterns that every name fits. */
const anything = /^(\.\*|\^?\(?\.\*\)?\$?|\.|\^)$/;

const unmatched: LintRule = blockRule({
  code: 'CF06',
  severity: 'error',
  summary: 'template with match but without fallthrough, in front of other sources',
  find(block, tell) {
    const next = others.find((name) => block.has(name));
    if (next === undefined) return;
    for (const directive of block.directives('template')) {
      const match = lineOf(directive, 'match');
      if (match === null || lineOf(directive, 'fallthrough') !== null) continue;
      if (match.args.some(({ text }) => anything.test(text))) continue;
      const { zones, types } = shapeOf(directive, block);
      // A zone that no other block serves may end here.
      const shared = zones.some((zone) => block.zones.includes(zone));
      if (!shared) continue;
      tell({
        at: match.name,
        text: `names that do not match get SERVFAIL, and ${next} is never queried for ${types === 'ANY' ? 'them' : `their ${types}`}`,
        hint: 'A template whose pattern does not match answers SERVFAIL unless it has fallthrough.',
        remedy: 'Add fallthrough.',
        fix: { kind: 'property', directive, text: 'fallthrough' },
      });
    }
  },
});

/** An SOA that limits negative caching to 60 s. Its names need not exist. */
const soaLine =
  'authority "{{ .Zone }} 60 IN SOA ns.invalid. hostmaster.invalid. 1 7200 900 86400 60"';

const suppressedFamily: LintRule = blockRule({
  code: 'CF07',
  severity: 'error',
  summary: 'AAAA (or A) suppressed by NXDOMAIN, or by NOERROR without SOA',
  find(block, tell) {
    for (const directive of block.directives('template')) {
      const { types } = shapeOf(directive, block);
      if (types !== 'AAAA' && types !== 'A' && types !== 'HTTPS') continue;
      if (lineOf(directive, 'answer') !== null) continue;
      const code = lineOf(directive, 'rcode');
      const rcode = (code?.args[0]?.text ?? 'NOERROR').toUpperCase();
      if (rcode === 'NXDOMAIN') {
        tell({
          at: code?.args[0] ?? directive,
          text: `NXDOMAIN for ${types} means that the whole name does not exist`,
          hint: 'musl and others that query A and AAAA in parallel then fail, and caches deny every type.',
          remedy: `Use rcode NOERROR, with ${soaLine}`,
        });
      } else if (rcode === 'NOERROR') {
        const soa = directive.block?.some(
          ({ name, args }) =>
            name.text === 'authority' && args.some(({ text }) => /\sSOA\s/i.test(` ${text} `)),
        );
        if (soa === true) continue;
        tell({
          at: code?.name ?? directive,
          text: `NOERROR without records or an SOA, so caches cannot store that there is no ${types}`,
          severity: 'warning',
          hint: 'Without an SOA, the answer is not cached (CoreDNS since 1.14.7, and resolvers by RFC 2308), so every lookup sends the query again.',
          remedy: `Add: ${soaLine}`,
          fix: { kind: 'property', directive, text: soaLine },
        });
      }
    }
  },
});

export const templateRules: readonly LintRule[] = [unmatched, suppressedFamily];
