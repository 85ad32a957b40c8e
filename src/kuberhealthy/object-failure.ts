/** Failures that are about one object, and say nothing of the next one. */
import type { ApiFailure } from '../kube/api/failure.ts';

/**
 * Whether the API server took the request and refused what it asks of this object: a quota, a namespace that goes away, a policy, a webhook, a
 * schema. What keeps all requests from being taken is none of these.
 */
export function isOfObject({ kind, status }: ApiFailure): boolean {
  return kind === 'forbidden' || kind === 'invalid' || kind === 'large' || status === 409;
}
