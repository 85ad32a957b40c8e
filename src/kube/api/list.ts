/** A list of objects, page by page: of one page at a time there is memory. */
import { asObject, child, children, text, type JsonObject } from '../../base/json-object.ts';
import type { ApiClient } from './client.ts';
import { ApiFailure } from './failure.ts';
import { getJson } from './get-json.ts';

/** What is listed. */
export interface ListRequest {
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Longest wait for each page, milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Items of a page: fewer are asked for when so many take more than `PAGE_BYTES_MAX`. */
const PAGES: readonly number[] = [500, 100, 20, 4];
/** Of a page as it is sent. etcd takes no object of more than 1.5 MiB, so that some always fit. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** Objects of one list that are read: pods are counted in ten thousands, and more is a mistake. */
const ITEMS_MAX = 200_000;

/** How a list ended: with its last item, or because `take` or the number of its items put an end to it. */
export type ListEnd = 'whole' | 'cut';

/**
 * Hands over every item of a list. Rejects with an `ApiFailure`, or when aborted.
 * @param take false: there is no room for more
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
    // A page without an item is a step, too: a list of such pages has no end.
    taken += Math.max(1, items.length);
    from = text(child(list, 'metadata'), 'continue');
    if (from === '') return 'whole';
  }
  return 'cut';
}

/** The same where part of a list is of no use. Rejects with an `ApiFailure` of the kind `large` if there are more objects than are read. */
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
