/** Rules about `reload`. */
import { parseDuration } from '../../../server/base/duration.ts';
import { corefileRule, type LintRule } from '../lint-rule.ts';
import { lineOf, type LintedCorefile } from '../subject.ts';

const together: LintRule = corefileRule({
  code: 'CF19',
  severity: 'warning',
  summary:
    'reload with little jitter and a long lameduck, which makes all replicas unavailable at once',
  find({ blocks }, tell) {
    const lamed = blocks
      .flatMap((block) => block.directives('health'))
      .map((directive) => lineOf(directive, 'lameduck')?.args[0]);
    const lameduckMs = Math.max(0, ...lamed.map((token) => parseDuration(token?.text ?? '') ?? 0));
    for (const directive of blocks.flatMap((block) => block.directives('reload'))) {
      const [interval, jitter] = directive.args;
      const intervalMs = parseDuration(interval?.text ?? '30s') ?? 30_000;
      const askedMs = parseDuration(jitter?.text ?? '15s') ?? 15_000;
      const jitterMs = Math.min(askedMs, intervalMs / 2);
      if (lameduckMs < 5000 || lameduckMs < 2 * jitterMs) continue;
      tell({
        at: jitter ?? interval ?? directive,
        text: `with a jitter of ${jitterMs / 1000} s and lameduck ${lameduckMs / 1000}s, all replicas reload and are not ready at the same time`,
        hint: 'A reload includes lameduck, during which /ready fails, so one edit removes every replica from the Service.',
        remedy: `Spread them: reload ${Math.ceil(lameduckMs / 250)}s ${Math.ceil(lameduckMs / 500)}s, or shorten lameduck.`,
      });
    }
  },
});

/** Addresses on which a Corefile's plugins open HTTP servers, by plugin. */
function addresses({ blocks }: LintedCorefile): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(
    ['health', 'prometheus', 'ready'].map((name) => [
      name,
      new Set(
        blocks.flatMap((block) =>
          block.directives(name).map(({ args }) => args[0]?.text ?? 'the usual address'),
        ),
      ),
    ]),
  );
}

const movedPorts: LintRule = corefileRule({
  code: 'CF20',
  ofCore: true,
  severity: 'warning',
  summary: 'a new address for health, ready or prometheus, applied by reload',
  find(corefile, tell, { running }) {
    if (running === null) return;
    if (!running.blocks.some((block) => block.has('reload'))) return;
    const before = addresses(running);
    for (const block of corefile.blocks) {
      for (const [name, known] of before) {
        for (const { at, args } of block.directives(name)) {
          const address = args[0]?.text ?? 'the usual address';
          if (known.size === 0 || known.has(address)) continue;
          tell({
            at: args[0] ?? at,
            text: `${name} moves from ${[...known].join(', ')} to ${address} while the server runs`,
            hint: 'CoreDNS closes the old address before it opens the new one. If that fails, it continues without either.',
            remedy:
              'Restart the pods instead of relying on reload, and update probes and scrapes as well.',
          });
        }
      }
    }
  },
});

export const reloadRules: readonly LintRule[] = [together, movedPorts];
