/** The fake API server's lists. */
import { groupVersion, storageName, type ServedResource } from './resources.ts';
import { readSelection, readVersion } from './query.ts';
import { Refusal } from './status.ts';
import type { Store, Stored } from './store.ts';

/** Returns lists, whole or in pages. All pages of a list show the state at the time of the first. */
export class Lists {
  readonly #store: Store;
  readonly #pagesFromCache: boolean;
  #open = new Map<string, { readonly objects: readonly Stored[]; readonly revision: number }>();
  #tokens = 0;

  constructor(store: Store, pagesFromCache: boolean) {
    this.#store = store;
    this.#pagesFromCache = pagesFromCache;
  }

  forget(): void {
    this.#open.clear();
  }

  list(query: URLSearchParams, resource: ServedResource, namespace: string): string {
    const matches = readSelection(query);
    const limit = readLimit(query);
    const token = query.get('continue') ?? '';
    const version = readVersion(query);
    if (query.get('sendInitialEvents') !== null) {
      throw new Refusal(422, 'sendInitialEvents: Forbidden: it is forbidden for list');
    }
    if (token !== '' && version !== null && version !== 0) {
      throw new Refusal(400, 'specifying resource version is not allowed when using continue');
    }
    if (version !== null && version > this.#store.revision) {
      throw new Refusal(
        504,
        `Too large resource version: ${version}, current: ${this.#store.revision}`,
      );
    }
    const page = token === '' ? null : this.#open.get(token);
    if (page === undefined) {
      throw new Refusal(
        410,
        'The provided continue parameter is too old to display a consistent list result.',
      );
    }
    if (page !== null) this.#open.delete(token);
    const objects =
      page?.objects ??
      this.#store
        .all(storageName(resource))
        .filter((one) => namespace === '' || one.object.metadata.namespace === namespace)
        .filter((one) => matches(one.object));
    const revision = page?.revision ?? this.#store.revision;
    const cached = version === 0 && !this.#pagesFromCache;
    const size = limit === 0 || cached ? objects.length : limit;
    const rest = objects.slice(size);
    const metadata: Record<string, unknown> = { resourceVersion: String(revision) };
    if (rest.length > 0) {
      const next = Buffer.from(`{"v":"meta.k8s.io/v1","n":${++this.#tokens}}`).toString(
        'base64url',
      );
      this.#open.set(next, { objects: rest, revision });
      metadata['continue'] = next;
      metadata['remainingItemCount'] = rest.length;
    }
    const groupAndVersion = groupVersion(resource);
    // List items have neither kind nor version, as on the real server.
    const items = objects
      .slice(0, size)
      .map((one) => `{${one.body}`)
      .join(',');
    return `{"kind":"${resource.kind}List","apiVersion":"${groupAndVersion}","metadata":${JSON.stringify(metadata)},"items":[${items}]}\n`;
  }
}

function readLimit(query: URLSearchParams): number {
  const text = query.get('limit') ?? '';
  if (text === '') return 0;
  if (!/^\d+$/.test(text)) throw new Refusal(400, `limit: Invalid value: "${text}"`);
  return Number(text);
}
