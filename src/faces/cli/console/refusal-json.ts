/** A request that a person can correct, as the page shows it. */
import { problemsIn } from '../../../server/base/problem.ts';

/** `{ text, hint }` of a Problem. @throws the error, where it is another one */
export function refusalJson(error: unknown): string {
  const [problem] = problemsIn(error) ?? [];
  if (problem === undefined) throw error;
  const { message: text, hint, remedy } = problem;
  return JSON.stringify({ text, hint: hint ?? remedy });
}
