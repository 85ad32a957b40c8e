/** Objects of a cluster, as its API server lists them; what may not be read is a part of the result. */
import type { ApiClient } from '../../kube/api/client.ts';
import { ApiFailure } from '../../kube/api/failure.ts';
import type { JsonObject } from '../../kube/api/json-object.ts';
import { listAll } from '../../kube/api/list.ts';
import type { GivenFile } from '../../lint/gather.ts';
import { pathOf, type Wanted } from './wanted.ts';

/** An API server that takes longer for a page is not there, milliseconds. */
const WAIT_MS = 8000;
/** Fifty thousand pods are listed within this, milliseconds. */
const LIST_MS = 60_000;

/** One list. */
export interface ReadList {
  readonly wanted: Wanted;
  readonly items: readonly JsonObject[];
  /** Why there is none; null: this is the whole list. */
  readonly failure: ApiFailure | null;
  /** Why it is of one namespace only; null: it is not. */
  readonly narrowed: ApiFailure | null;
}

/**
 * Lists all that is wanted. Rejects only when aborted.
 * @param trimmed what is kept of an item; null: nothing of it. Lists may be long: pods, slices
 */
export function readObjects(
  client: ApiClient,
  wanted: readonly Wanted[],
  signal: AbortSignal,
  trimmed: (kind: string, item: JsonObject) => JsonObject | null = (_, item) => item,
): Promise<readonly ReadList[]> {
  const read = async (of: Wanted): Promise<readonly JsonObject[]> => {
    const items: JsonObject[] = [];
    // An API server that sends a little now and then is not waited for.
    const within = AbortSignal.any([signal, AbortSignal.timeout(LIST_MS)]);
    const take = (item: JsonObject): void => {
      const kept = trimmed(of.kind, item);
      if (kept !== null) items.push(kept);
    };
    await listAll(client, { path: pathOf(of), waitMs: WAIT_MS, signal: within }, take);
    return items;
  };
  return Promise.all(
    wanted.map(async (each) => {
      try {
        return { wanted: each, items: await read(each), failure: null, narrowed: null };
      } catch (error) {
        const failure = failureOf(error, each, signal);
        if (failure.kind !== 'forbidden' || each.within === null)
          return { wanted: each, items: [], failure, narrowed: null };
        try {
          const items = await read({ ...each, namespace: each.within });
          return { wanted: each, items, failure: null, narrowed: failure };
        } catch (again) {
          failureOf(again, each, signal);
          return { wanted: each, items: [], failure, narrowed: null };
        }
      }
    }),
  );
}

function failureOf(error: unknown, { plural }: Wanted, signal: AbortSignal): ApiFailure {
  if (error instanceof ApiFailure) return error;
  if (signal.aborted || (error as Error).name !== 'TimeoutError') throw error;
  const text = `"list ${plural}" took more than ${LIST_MS / 1000} s`;
  return new ApiFailure({ kind: 'silent', text });
}

/** A list as a file for the linter. @param name of the cluster, for people */
export function fileOf(name: string, kind: string, items: readonly JsonObject[]): GivenFile {
  // Items of a list have no kind of their own.
  const list = { kind: 'List', items: items.map((item) => ({ ...item, kind })) };
  return { file: `${name}: ${kind}`, text: JSON.stringify(list, null, 1), named: true };
}
