/** Hands all cached entries over to another process, which loads them. Runs in the main thread. */
import type { ControlContext } from '../../engine/contract/control-context.ts';
import type { CacheMessage, CacheOrder } from './cache-messages.ts';

/** The cache of one server block. */
interface Shared {
  readonly key: string;
  pack(): Promise<readonly Uint8Array[]>;
}

/** Maximum wait for busy workers, in milliseconds. */
const WAIT_MS = 500;

const caches = new Set<Shared>();
let taken: ReadonlyMap<string, readonly Uint8Array[]> = new Map();

/**
 * Registers one cache.
 * @returns the handler for messages from its workers
 */
export function shareCache(context: ControlContext): (message: CacheMessage) => void {
  const key = [context.servers.join(), context.zones.join(), context.view].join(' ');
  let id = 0;
  let packed: Uint8Array[] = [];
  let arrived = (): void => undefined;
  const shared: Shared = {
    key,
    pack() {
      packed = [];
      return new Promise((resolve) => {
        const end = (): void => {
          timer.cancel();
          resolve(packed);
        };
        const timer = context.clock.after(WAIT_MS, end);
        const workers = context.publish({ kind: 'pack', id: ++id } satisfies CacheOrder);
        arrived = (): void => {
          if (packed.length >= workers) end();
        };
        arrived();
      });
    },
  };
  context.onJoin(() =>
    (taken.get(key) ?? []).map((entries) => ({ kind: 'unpack', entries }) satisfies CacheOrder),
  );
  context.onStart(() => void caches.add(shared));
  context.onStop(() => void caches.delete(shared));
  return (message) => {
    if (message.kind !== 'packed' || message.id !== id) return;
    packed.push(message.entries);
    arrived();
  };
}

/** Packs the entries of all caches for `takeCaches` in another process. */
export async function packCaches(): Promise<Uint8Array> {
  const shared = [...caches];
  const all = await Promise.all(shared.map((cache) => cache.pack()));
  const pieces: Uint8Array[] = [];
  for (const [index, { key }] of shared.entries())
    for (const entries of all[index]!) {
      const name = Buffer.from(key);
      const head = Buffer.alloc(8);
      head.writeUInt32BE(name.length, 0);
      head.writeUInt32BE(entries.length, 4);
      pieces.push(head, name, entries);
    }
  return Buffer.concat(pieces);
}

/**
 * Fills new caches at the same place in the Corefile from the output of `packCaches`.
 * @returns a function that discards this output
 */
export function takeCaches(bytes: Uint8Array): () => void {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = new Map<string, Uint8Array[]>();
  for (let at = 0; at + 8 <= view.length;) {
    const name = at + 8;
    const entries = name + view.readUInt32BE(at);
    const end = entries + view.readUInt32BE(at + 4);
    if (end > view.length) break;
    const key = view.toString('utf8', name, entries);
    const list = found.get(key) ?? [];
    // Copied because sending a view to a worker would send its whole buffer.
    list.push(Uint8Array.from(view.subarray(entries, end)));
    found.set(key, list);
    at = end;
  }
  taken = found;
  return () => {
    taken = new Map();
  };
}
