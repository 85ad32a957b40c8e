/** An API server that could not be asked, as a person at a command line is told. */
import { Problem } from '../../base/problem.ts';
import { ApiFailure } from './failure.ts';

/** What is said besides what happened. */
export interface NotAsked {
  /** In place of what the failure says happened. */
  readonly text?: string;
  /** In place of the failure's own advice. */
  readonly hint?: string | undefined;
  readonly remedy?: string | undefined;
}

/** The problem `cluster-not-asked`. */
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
