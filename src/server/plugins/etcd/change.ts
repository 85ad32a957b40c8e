/** Changes that are sent to workers to update their copies. */
export type EtcdChange =
  /**
   * A changed key (relative to `path`) and its value, which is null if the key was deleted and empty if the value is
   * invalid.
   */
  | { readonly about: 'key'; readonly key: string; readonly packed: string | null }
  /** Expiry of a lease, in milliseconds since 1970, or null if it is no longer needed. */
  | { readonly about: 'lease'; readonly id: string; readonly until: number | null }
  /** Set once everything has been listed, along with the time of the last change in Unix seconds. */
  | { readonly about: 'state'; readonly listed: boolean; readonly serial: number };

/** Returns the approximate size in bytes of a change on its way to a worker. */
export function sizeOf(change: EtcdChange): number {
  return change.about === 'key' ? 48 + change.key.length + (change.packed?.length ?? 0) : 48;
}
