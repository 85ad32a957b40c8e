/** A list of objects, page by page: of one page at a time there is memory. */
import type { ApiClient } from './client.ts';
import { getJson } from './get-json.ts';
import { asObject, child, children, text, type JsonObject } from './json-object.ts';

/** What is listed. */
export interface ListRequest {
  readonly path: string;
  readonly labelSelector?: string;
  /** Longest wait for each page, milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

const PAGE = '500';
/** Pods are counted in ten thousands; more pages are a mistake. */
const PAGES_MAX = 400;

/** Hands over every item of a list. Rejects with an `ApiFailure`, or when aborted. */
export async function listAll(
  client: ApiClient,
  { path, labelSelector, waitMs, signal }: ListRequest,
  take: (item: JsonObject) => void,
): Promise<void> {
  const task = `list ${path.split('/').at(-1)!}`;
  let from = '';
  for (let page = 0; page < PAGES_MAX; page++) {
    const query: Record<string, string> = { limit: PAGE };
    if (labelSelector !== undefined) query['labelSelector'] = labelSelector;
    if (from !== '') query['continue'] = from;
    const list = asObject(await getJson(client, { path, query, task, waitMs, signal }));
    for (const item of children(list, 'items')) take(item);
    from = text(child(list, 'metadata'), 'continue');
    if (from === '') return;
  }
}
