/** Reports request errors that the user can correct. */
import { problemsIn } from '../../../server/base/problem.ts';

/**
 * Converts a Problem to `{ text, hint }`.
 * @throws any other error
 */
export function refusalJson(error: unknown): string {
  const [problem] = problemsIn(error) ?? [];
  if (problem === undefined) throw error;
  const { message: text, hint, remedy } = problem;
  return JSON.stringify({ text, hint: hint ?? remedy });
}
