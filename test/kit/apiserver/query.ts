/** Parses request parameters for the fake API server. */
import { Refusal } from './status.ts';
import { selection, type KubeJson } from './store.ts';

/** Rejects malformed selectors. */
export function readSelection(query: URLSearchParams): (object: KubeJson) => boolean {
  try {
    return selection(query.get('labelSelector') ?? '', query.get('fieldSelector') ?? '');
  } catch (error) {
    throw new Refusal(400, (error as Error).message);
  }
}

/** Returns the requested version, or null if there is none. */
export function readVersion(query: URLSearchParams): number | null {
  const text = query.get('resourceVersion') ?? '';
  if (text === '') return null;
  if (!/^\d+$/.test(text)) {
    throw new Refusal(400, `resourceVersion: Invalid value: "${text}": strconv.ParseUint`);
  }
  return Number(text);
}
