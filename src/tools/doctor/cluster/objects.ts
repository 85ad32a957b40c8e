/**
 * Objects of a cluster, as its API server lists them; what may not be read is a part of the result.
 */
import { printSpan } from '../../../server/base/elapsed.ts';
import type { JsonObject } from '../../../server/base/json-object.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { listAll } from '../../pods/list.ts';
import type { GivenFile } from '../../lint/gather.ts';
import { pathOf, type WantedResource } from './wanted.ts';
import { LIST_WAIT_MS, PAGE_WAIT_MS } from '../thresholds/cluster.ts';

/** The limit of all stored lists together, as JSON: in memory they take several times as much. */
export const OBJECTS_BYTES_MAX: number = 32 * 1024 * 1024;
/** Of these one list may take: the others are wanted, too. */
const LIST_BYTES_MAX = OBJECTS_BYTES_MAX / 2;

/** The stored part of an item, and its size as JSON. */
export interface KeptItem {
  /** Null: it is stored elsewhere, or not at all. */
  readonly item: JsonObject | null;
  readonly bytes: number;
}

export interface ReadList {
  readonly wanted: WantedResource;
  readonly items: readonly JsonObject[];
  /** Why the list is missing or incomplete; null: it is complete. */
  readonly failure: ApiFailure | null;
  /** Why it is of one namespace only; null: it is not. */
  readonly narrowed: ApiFailure | null;
  /** The number of objects read, if there are more; null: the list is complete. */
  readonly cutAt: number | null;
}

/**
 * Lists all resources. Rejects only when aborted. @param keep returns the part of an item to store;
 * the item without it. Lists may be long: pods, slices
 */
export function readObjects(
  client: ApiClient,
  wanted: readonly WantedResource[],
  signal: AbortSignal,
  keep: (kind: string, item: JsonObject) => KeptItem = (_, item) => whole(item),
): Promise<readonly ReadList[]> {
  let room = OBJECTS_BYTES_MAX;
  const read = async (of: WantedResource): Promise<Pick<ReadList, 'items' | 'cutAt'>> => {
    const items: JsonObject[] = [];
    let count = 0;
    let bytes = 0;
    // An API server that sends a little now and then is not waited for.
    const within = AbortSignal.any([signal, AbortSignal.timeout(LIST_WAIT_MS)]);
    const take = (item: JsonObject): boolean => {
      const kept = keep(of.kind, item);
      if (kept.bytes > room || bytes + kept.bytes > LIST_BYTES_MAX) return false;
      room -= kept.bytes;
      bytes += kept.bytes;
      count++;
      if (kept.item !== null) items.push(kept.item);
      return true;
    };
    const end = await listAll(
      client,
      { path: pathOf(of), waitMs: PAGE_WAIT_MS, signal: within },
      take,
    );
    return { items, cutAt: end === 'whole' ? null : count };
  };
  return Promise.all(
    wanted.map(async (each) => {
      try {
        return { wanted: each, ...(await read(each)), failure: null, narrowed: null };
      } catch (error) {
        const failure = failureOf(error, each, signal);
        if (failure.kind !== 'forbidden' || each.within === null)
          return { wanted: each, items: [], failure, narrowed: null, cutAt: null };
        try {
          const found = await read({ ...each, namespace: each.within });
          return { wanted: each, ...found, failure: null, narrowed: failure };
        } catch (again) {
          failureOf(again, each, signal);
          return { wanted: each, items: [], failure, narrowed: null, cutAt: null };
        }
      }
    }),
  );
}

export function whole(item: JsonObject): KeptItem {
  return { item, bytes: JSON.stringify(item).length };
}

function failureOf(error: unknown, { plural }: WantedResource, signal: AbortSignal): ApiFailure {
  if (error instanceof ApiFailure) return error;
  if (signal.aborted || (error as Error).name !== 'TimeoutError') throw error;
  const text = `"list ${plural}" took more than ${printSpan(LIST_WAIT_MS)}`;
  return new ApiFailure({ kind: 'silent', text });
}

/** A list as a file for the linter. @param name of the cluster, for people */
export function fileOf(name: string, kind: string, items: readonly JsonObject[]): GivenFile {
  // Items of a list have no kind of their own.
  const list = { kind: 'List', items: items.map((item) => ({ ...item, kind })) };
  return { file: `${name}: ${kind}`, text: JSON.stringify(list, null, 1), named: true };
}
