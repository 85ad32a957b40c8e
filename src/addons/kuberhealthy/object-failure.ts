/** Recognizes failures that concern a single object. */
import type { ApiFailure } from '../../server/kube/api/failure.ts';

/**
 * True if the API server rejected the change because of the object itself, for example its quota, namespace, policy,
 * webhook or schema. False for failures that affect all requests.
 */
export function isOfObject({ kind, status }: ApiFailure): boolean {
  return kind === 'forbidden' || kind === 'invalid' || kind === 'large' || status === 409;
}
