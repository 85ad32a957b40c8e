/** Names that are denied every time they are queried. */
import { MIN_CASES } from '../thresholds/evidence.ts';
import type { NameView } from './name-view.ts';

/** True if all replies about the name are NXDOMAIN, and there are enough of them. */
export function isNeverFound({ outcomes: { nxdomain, lost, asked } }: NameView): boolean {
  return nxdomain >= MIN_CASES && nxdomain + lost === asked;
}
