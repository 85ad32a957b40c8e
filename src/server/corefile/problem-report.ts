/** Collects the problems and remarks of parsing a Corefile. */
import { printPlace } from '../base/problem.ts';
import type { Place, Problem } from '../base/problem.ts';
import { parseProblem, warning } from './problems.ts';
import type { Advice } from './problems.ts';

/** Maximum number of problems, so that a garbage file does not produce megabytes of reports. */
const PROBLEMS_MAX = 100;

/** Collects problems in order; a snippet that is imported twice reports its mistakes once. */
export class ProblemReport {
  readonly found: Problem[] = [];
  readonly remarks: Problem[] = [];
  readonly #seen = new Set<string>();

  /** True if the limit of problems is reached. */
  get full(): boolean {
    return this.found.length >= PROBLEMS_MAX;
  }

  problem(problem: Problem): void {
    this.#add(this.found, problem);
  }

  /** A mistake in the file itself, in CoreDNS's words. */
  mistake(place: Place, text: string, advice: Advice): void {
    if (!this.full) this.problem(parseProblem(place, text, advice));
  }

  /** Something that works, but probably not as intended. */
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
