/** Prints problems to standard error, with a code that is explained in docs/problems.md. */
import type { Problem } from '../../server/base/problem.ts';

/** Appends the code to the first line, except for `usage`, whose hint points to `--help` for more detail. */
export function problemText(problem: Problem): string {
  const text = problem.print();
  return problem.code === 'usage' ? text : text.replace(/(?=\n)|$/, ` [${problem.code}]`);
}

/** Prints each problem as `ndots VERB: TEXT [CODE]`. */
export function tellProblems(
  verb: string,
  problems: readonly Problem[],
  io: { err(text: string): void },
): void {
  for (const problem of problems) io.err(`ndots ${verb}: ${problemText(problem)}\n`);
}
