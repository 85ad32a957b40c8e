/** Faults that checks of the DNS servers found. */
import type { CheckResult } from '../../probe/round.ts';
import type { Answers } from './asking.ts';

/**
 * Faults of one check at servers whose answer over plain UDP is right: otherwise every way fails.
 * Null: it was not run, or could not be.
 */
export function failuresOf(
  { checks, replicas, vips }: Answers,
  name: string,
): CheckResult['observations'] | null {
  const result = checks.get(name);
  if (result === undefined || result.state === 'unknown') return null;
  const fine = [...replicas, ...vips].filter(({ outcome }) => outcome === 'NOERROR');
  if (fine.length === 0) return null;
  const right = new Set(fine.map(({ server }) => server));
  return result.observations.filter(({ state, target }) => state === 'failed' && right.has(target));
}
