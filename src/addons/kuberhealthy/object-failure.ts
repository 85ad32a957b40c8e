/** Recognizes failures that concern a single object. */
import type { ApiFailure } from '../../server/kube/api/failure.ts';

/**
 * True if the API server refused the change because of this object: a quota, a namespace being
 * deleted, a policy, a webhook, a schema. Failures that concern all requests are not among these.
 */
export function isOfObject({ kind, status }: ApiFailure): boolean {
  return kind === 'forbidden' || kind === 'invalid' || kind === 'large' || status === 409;
}
