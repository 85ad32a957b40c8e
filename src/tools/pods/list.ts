/** Lists objects page by page, so that only one page is in memory at any time. */
import { asObject, child, children, text, type JsonObject } from '../../server/base/json-object.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { getJson } from '../../server/kube/api/get-json.ts';

export interface ListRequest {
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Maximum wait for each page, in milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Items per page. If a page exceeds `PAGE_BYTES_MAX`, the number is reduced. */
const PAGES: readonly number[] = [500, 100, 20, 4];
/** Maximum size of a page in bytes. etcd stores no object larger than 1.5 MiB, so a few always fit. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** Maximum number of objects in a list. Clusters have tens of thousands of pods, so exceeding this is an error. */
const ITEMS_MAX = 200_000;

/** The way a list ended: complete, or cut short by `take` or by the item limit. */
export type ListEnd = 'whole' | 'cut';

/**
 * Passes every item in a list to `take`. Rejects with an `ApiFailure`, or when aborted.
 * @param take returns false to end the list
 */
export async function listAll(
  client: ApiClient,
  request: ListRequest,
  take: (item: JsonObject) => boolean,
): Promise<ListEnd> {
  const { labelSelector, fieldSelector, ...asked } = request;
  const task = taskOf(request);
  let from = '';
  let size = 0;
  for (let taken = 0; taken < ITEMS_MAX;) {
    const query: Record<string, string> = { limit: String(PAGES[size]!) };
    if (labelSelector !== undefined) query['labelSelector'] = labelSelector;
    if (fieldSelector !== undefined) query['fieldSelector'] = fieldSelector;
    if (from !== '') query['continue'] = from;
    let list: JsonObject;
    try {
      list = asObject(await getJson(client, { ...asked, query, task, bytesMax: PAGE_BYTES_MAX }));
    } catch (error) {
      const isLarge = error instanceof ApiFailure && error.kind === 'large';
      if (!isLarge || size === PAGES.length - 1) throw error;
      size++;
      continue;
    }
    const items = children(list, 'items');
    for (const item of items) if (!take(item)) return 'cut';
    // An empty page counts as well, because otherwise a list of empty pages might never end.
    taken += Math.max(1, items.length);
    from = text(child(list, 'metadata'), 'continue');
    if (from === '') return 'whole';
  }
  return 'cut';
}

/** Returns the whole list. Rejects with an `ApiFailure`, which is of kind `large` if there are too many objects. */
export async function listWhole(
  client: ApiClient,
  request: ListRequest,
  take: (item: JsonObject) => void,
): Promise<void> {
  const end = await listAll(client, request, (item) => {
    take(item);
    return true;
  });
  if (end === 'whole') return;
  const text = `${client.host}: "${taskOf(request)}" has more than ${ITEMS_MAX} objects`;
  throw new ApiFailure({ kind: 'large', text });
}

function taskOf({ path }: ListRequest): string {
  return `list ${path.split('/').at(-1)!}`;
}
