/** Prints problems on standard error, with the code that docs/problems.md explains. */
import type { Problem } from '../../server/base/problem.ts';

/**
 * Adds the code to the end of the first line. `usage` has none: the hint below it names `--help`,
 * which says more than the page.
 */
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
