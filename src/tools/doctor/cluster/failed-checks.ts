/** What checks of the DNS servers found wrong. */
import type { CheckResult } from '../../probe/round.ts';
import type { Answers } from './asking.ts';

/**
 * What one of the checks found wrong at servers whose answer over plain UDP is right: what is wrong
 * there is wrong in every way. Null: it was not run, or could not be.
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
