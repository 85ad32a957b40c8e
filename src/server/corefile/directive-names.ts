import { gluedBrace } from './glued-brace.ts';
import { meant, parseProblem } from './problems.ts';
import type { Advice } from './problems.ts';
import type { ProblemReport } from './problem-report.ts';
import type { Syntax } from './syntax.ts';
import type { Token } from './corefile-tree.ts';

/** The known directives, by current and older names. */
export class DirectiveNames {
  readonly #known: ReadonlySet<string>;
  readonly #external: Readonly<Record<string, string>>;
  readonly #syntaxes: readonly Syntax[];
  readonly #formerly = new Map<string, { name: string; text: string }>();
  readonly #report: ProblemReport;

  constructor(
    known: readonly string[],
    external: Readonly<Record<string, string>>,
    syntaxes: readonly Syntax[],
    report: ProblemReport,
  ) {
    this.#external = external;
    this.#known = new Set(known);
    this.#syntaxes = syntaxes;
    this.#report = report;
    for (const { name, formerly } of syntaxes) {
      for (const [old, text] of Object.entries(formerly)) this.#formerly.set(old, { name, text });
    }
  }

  /**
   * Returns the directive's current name, or null and a problem if it is unknown. `braces` is true if the server block
   * has braces.
   */
  today({ text, place }: Token, braces: boolean): string | null {
    if (this.#known.has(text)) return text;
    if (this.#report.full) return null;
    const today = this.#formerly.get(text);
    if (today !== undefined && this.#known.has(today.name)) {
      this.#report.warning(place, `'${text}' is read as '${today.name}': ${today.text}`, {
        code: 'directive-renamed',
      });
      return today.name;
    }
    this.#report.problem(
      parseProblem(place, `Unknown directive '${text}'`, {
        code: 'directive-unknown',
        ...this.#advice(text, braces),
      }),
    );
    return null;
  }

  #advice(word: string, braces: boolean): Advice {
    if (Object.hasOwn(this.#external, word)) {
      return {
        hint: `'${word}' is an external CoreDNS plugin that official builds do not include.`,
        remedy: this.#external[word],
      };
    }
    const owners = this.#syntaxes.filter(
      ({ properties, retired }) =>
        Object.hasOwn(retired, word) ||
        Object.values(properties).some(({ words }) => words.includes(word)),
    );
    if (owners.length > 0) {
      const names = owners.map(({ name }) => `'${name}'`).join(' or ');
      return { hint: `'${word}' belongs inside the braces of ${names}.` };
    }
    const glued = gluedBrace(word);
    if (glued !== null) return glued;
    const near = meant(word, this.#known);
    if (near !== null) return { hint: near };
    if (word === '{') return { hint: 'A { belongs at the end of the line before it.' };
    if (/[.:]/.test(word)) {
      return braces
        ? {
            hint: 'This looks like a server block’s address inside another server block.',
            remedy: 'Server blocks cannot be nested: end the one above with } before this line.',
          }
        : {
            hint: 'This looks like an address.',
            remedy: 'In a file with several server blocks, each of them needs braces.',
          };
    }
    return {};
  }
}
