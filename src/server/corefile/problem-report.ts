/** Collects the problems and remarks that arise while parsing a Corefile. */
import { printPlace } from '../base/problem.ts';
import type { Place, Problem } from '../base/problem.ts';
import { parseProblem, warning } from './problems.ts';
import type { Advice } from './problems.ts';

/** Maximum number of problems, so that a file full of garbage does not produce megabytes of output. */
const PROBLEMS_MAX = 100;

/** Collects problems in order. If a snippet is imported twice, its errors are reported only once. */
export class ProblemReport {
  readonly found: Problem[] = [];
  readonly remarks: Problem[] = [];
  readonly #seen = new Set<string>();

  /** True if the maximum number of problems has been reached. */
  get full(): boolean {
    return this.found.length >= PROBLEMS_MAX;
  }

  problem(problem: Problem): void {
    this.#add(this.found, problem);
  }

  /** Reports an error in the file itself, in CoreDNS's words. */
  mistake(place: Place, text: string, advice: Advice): void {
    if (!this.full) this.problem(parseProblem(place, text, advice));
  }

  /** Reports something that works, but probably not as intended. */
  warning(place: Place, text: string, advice: Advice): void {
    this.#add(this.remarks, warning(place, text, advice));
  }

  warnings(more: readonly Problem[]): void {
    for (const remark of more) this.#add(this.remarks, remark);
  }

  #add(list: Problem[], problem: Problem): void {
    if (list.length >= PROBLEMS_MAX) return;
    const identity = `${problem.place === null ? '' : printPlace(problem.place)} ${problem.message}`;
    if (this.#seen.has(identity)) return;
    this.#seen.add(identity);
    list.push(problem);
  }
}
