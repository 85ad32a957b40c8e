/** Reports on the command line that an API server could not be reached. */
import { Problem } from '../../server/base/problem.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';

export interface NotAsked {
  /** Replaces the failure's message. */
  readonly text?: string;
  /** Replaces the failure's advice. */
  readonly hint?: string | undefined;
  readonly remedy?: string | undefined;
}

/** Creates the problem `cluster-not-asked`. */
export function clusterNotAsked(failure: Error, { text, hint, remedy }: NotAsked): Problem {
  const advice =
    failure instanceof ApiFailure && failure.advice !== '' ? failure.advice : undefined;
  return new Problem({
    code: 'cluster-not-asked',
    text: text ?? failure.message,
    hint: hint ?? advice,
    remedy,
    cause: failure,
  });
}
