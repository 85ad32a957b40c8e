/** Parameters of requests to the stand-in API server. */
import { Refusal } from './status.ts';
import { selection, type KubeJson } from './store.ts';

/** A malformed selector is refused. */
export function readSelection(query: URLSearchParams): (object: KubeJson) => boolean {
  try {
    return selection(query.get('labelSelector') ?? '', query.get('fieldSelector') ?? '');
  } catch (error) {
    throw new Refusal(400, (error as Error).message);
  }
}

/** Null: no version. */
export function readVersion(query: URLSearchParams): number | null {
  const text = query.get('resourceVersion') ?? '';
  if (text === '') return null;
  if (!/^\d+$/.test(text)) {
    throw new Refusal(400, `resourceVersion: Invalid value: "${text}": strconv.ParseUint`);
  }
  return Number(text);
}
