/** Changes that keep the workers' copies up to date. */
export type EtcdChange =
  /** A changed key (below `path`); null if deleted, empty if the value is invalid. */
  | { readonly about: 'key'; readonly key: string; readonly packed: string | null }
  /** Expiry of a lease in milliseconds since 1970, or null if no longer needed. */
  | { readonly about: 'lease'; readonly id: string; readonly until: number | null }
  /** True once everything has been listed, and the time of the last change in Unix seconds. */
  | { readonly about: 'state'; readonly listed: boolean; readonly serial: number };

/** Returns the approximate size of a change in transit, in bytes. */
export function sizeOf(change: EtcdChange): number {
  return change.about === 'key' ? 48 + change.key.length + (change.packed?.length ?? 0) : 48;
}
