/** The changes by which the workers' copies are kept up to date. */
export type EtcdChange =
  /** A changed key (below `path`); null: deleted; empty: the value is invalid. */
  | { readonly about: 'key'; readonly key: string; readonly packed: string | null }
  /** Expiry of a lease, milliseconds since 1970; null: no longer needed. */
  | { readonly about: 'lease'; readonly id: string; readonly until: number | null }
  /** Everything has been listed once, and when something last changed, Unix seconds. */
  | { readonly about: 'state'; readonly listed: boolean; readonly serial: number };

/** Approximate size of a change in transit, bytes. */
export function sizeOf(change: EtcdChange): number {
  return change.about === 'key' ? 48 + change.key.length + (change.packed?.length ?? 0) : 48;
}
