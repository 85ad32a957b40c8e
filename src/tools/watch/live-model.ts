/**
 * The live model: what any number of inputs show of DNS, over a sliding window. It does no I/O and
 * sees no clock: time comes with packets and through `advance`.
 */
import type { AddressOwners } from '../../server/kube/pods/address-owners.ts';
import type { LiveInput } from './live-input.ts';
import type { LiveLimits } from './live-limits.ts';
import type { ViewName, ViewQuery, Views } from './view.ts';

/** What a model is made of. */
export interface LiveModelParts {
  /** Those that are not given have their defaults. */
  readonly limits?: Partial<LiveLimits>;
  /** Who has which address; more can come later through `name`. */
  readonly owners?: AddressOwners;
}

/** What happens now, and within the last minutes. */
export interface LiveModelSurface {
  /**
   * Opens an input. Whatever takes packets, messages or lines gives them to its `reading`.
   * @param name for people: `interface eth0, port 53`
   */
  open(name: string): LiveInput;
  /** Takes the owners of addresses. Those of before that are not among them are remembered as gone. */
  name(owners: AddressOwners): void;
  /**
   * Moves the time on, milliseconds since 1970: what waits is given up, findings are looked for. A
   * driver calls it every second with its clock, or, where files are replayed, with the time that
   * the replay has reached.
   */
  advance(nowMs: number): void;
  /** Computes a view. @throws Problem with the code `usage` for a filter that cannot be */
  view<V extends ViewName>(query: ViewQuery<V>): Views[V];
}
