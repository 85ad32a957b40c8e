import { STEP, type Program } from './pattern-program.ts';

/** Longer texts are matched by their beginning only; names are far shorter. */
const TEXT_MAX = 4096;

/**
 * Runs a program by backtracking, as every engine does that prefers the first alternative, but remembers where it has
 * been: a state that failed at a place fails there again. So the time is at most instructions × characters.
 */
export class ProgramRun {
  readonly #program: Program;
  readonly #marks: Int32Array;
  /** One bit for each instruction at each place. */
  #seen = new Uint32Array(64);
  /** Instruction and place to go back to; or -1 - mark, and what it was. */
  #stack = new Int32Array(256);

  constructor(program: Program) {
    this.#program = program;
    this.#marks = new Int32Array(2 * (program.groupCount + 1));
  }

  /** Begin and end of the match and of its groups, -1 for those that took no part; null: no match. Valid until the next. */
  match(whole: string): Int32Array | null {
    const text = whole.length > TEXT_MAX ? whole.slice(0, TEXT_MAX) : whole;
    const words = ((text.length + 1) * this.#program.steps.length + 31) >>> 5;
    if (words > this.#seen.length) this.#seen = new Uint32Array(words);
    else this.#seen.fill(0, 0, words);
    for (let at = 0; at <= text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) {
      if (this.#from(text, at)) return this.#marks;
    }
    return null;
  }

  #from(text: string, begin: number): boolean {
    const { steps, x, y, sets } = this.#program;
    const marks = this.#marks.fill(-1);
    const seen = this.#seen;
    let size = 0;
    let step = 0;
    let at = begin;
    for (;;) {
      const bit = at * steps.length + step;
      let alive = (seen[bit >>> 5]! & (1 << (bit & 31))) === 0;
      if (alive) {
        seen[bit >>> 5]! |= 1 << (bit & 31);
        switch (steps[step]) {
          case STEP.set: {
            const code = text.codePointAt(at);
            alive = code !== undefined && sets[x[step]!]!.holds(code);
            at += code! > 0xffff ? 2 : 1;
            step++;
            break;
          }
          case STEP.fork:
            size = this.#push(size, y[step]!, at);
            step = x[step]!;
            break;
          case STEP.jump:
            step = x[step]!;
            break;
          case STEP.mark: {
            const mark = x[step]!;
            size = this.#push(size, -1 - mark, marks[mark]!);
            marks[mark] = at;
            step++;
            break;
          }
          case STEP.assert:
            alive = holdsAt(text, at, x[step]!);
            step++;
            break;
          default:
            return true;
        }
      }
      while (!alive) {
        if (size === 0) return false;
        const [back, value] = [this.#stack[size - 2]!, this.#stack[size - 1]!];
        size -= 2;
        if (back < 0) marks[-1 - back] = value;
        else {
          step = back;
          at = value;
          alive = true;
        }
      }
    }
  }

  #push(size: number, what: number, value: number): number {
    if (size + 2 > this.#stack.length) {
      const larger = new Int32Array(2 * this.#stack.length);
      larger.set(this.#stack);
      this.#stack = larger;
    }
    this.#stack[size] = what;
    this.#stack[size + 1] = value;
    return size + 2;
  }
}

/** @param condition index into `CONDITIONS` */
function holdsAt(text: string, at: number, condition: number): boolean {
  switch (condition) {
    case 0:
      return at === 0;
    case 1:
      return at === text.length;
    case 2:
      return at === 0 || text[at - 1] === '\n';
    case 3:
      return at === text.length || text[at] === '\n';
    default:
      return (isWord(text, at - 1) !== isWord(text, at)) === (condition === 4);
  }
}

function isWord(text: string, at: number): boolean {
  return /^\w$/.test(text[at] ?? '');
}
