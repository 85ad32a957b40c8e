/**
 * Comments that suppress findings. These are `# ndots:ignore CF07 because …` on the line or above it, and
 * `ndots:ignore-file` anywhere.
 */
import type { LintFinding } from './finding.ts';

interface Suppression {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly text: string;
  readonly codes: readonly string[];
  readonly reason: string;
  readonly wholeFile: boolean;
  used: boolean;
}

export class Suppressions {
  readonly #all: readonly Suppression[];
  readonly #known: ReadonlySet<string>;
  readonly #tried: ReadonlySet<string>;
  readonly #texts: ReadonlyMap<string, readonly string[]>;

  /**
   * @param known the existing codes
   * @param tried the codes of the rules that were run
   */
  constructor(
    texts: ReadonlyMap<string, readonly string[]>,
    known: ReadonlySet<string>,
    tried: ReadonlySet<string>,
  ) {
    this.#known = known;
    this.#tried = tried;
    this.#texts = texts;
    this.#all = [...texts].flatMap(([file, lines]) =>
      lines.flatMap((line, index) => suppressionIn(line, file, index + 1)),
    );
  }

  /** True if a comment suppresses this finding. Comments without a reason have no effect. */
  covers({ code, spot }: LintFinding): boolean {
    let covered = false;
    for (const each of this.#all) {
      if (each.file !== spot.file || !each.codes.includes(code) || each.reason === '') continue;
      if (!each.wholeFile && each.line !== spot.line && !this.#isAbove(each, spot.line)) continue;
      each.used = true;
      covered = true;
    }
    return covered;
  }

  /** True if there are only comments between the suppression and the line. */
  #isAbove({ file, line: own }: Suppression, line: number): boolean {
    const lines = this.#texts.get(file) ?? [];
    return own < line && lines.slice(own - 1, line - 1).every((text) => /^\s*#/.test(text));
  }

  /** The findings about the comments themselves: CF48. */
  misuses(nearestCode: (code: string) => string | null): readonly LintFinding[] {
    return this.#all.flatMap((each) => {
      const unknown = each.codes.find((code) => !this.#known.has(code));
      const finding = (text: string, remedy: string, hint: string | null = null): LintFinding => ({
        code: 'CF48',
        severity: each.used || (each.reason !== '' && unknown === undefined) ? 'note' : 'warning',
        text,
        spot: {
          file: each.file,
          line: each.line,
          column: each.column,
          endColumn: each.column + each.text.length,
        },
        within: null,
        excerpt: this.#texts.get(each.file)?.[each.line - 1] ?? null,
        caret: each.column,
        hint,
        remedy,
        edits: [],
      });
      if (each.codes.length === 0 || unknown === 'because')
        return [
          finding(
            'this comment does not name a code',
            `Write: # ndots:ignore${each.wholeFile ? '-file' : ''} CF07 because REASON`,
          ),
        ];
      if (unknown !== undefined) {
        const meant = nearestCode(unknown);
        const hint = meant === null ? null : `Did you mean '${meant}'?`;
        return [finding(`there is no code '${unknown}'`, 'docs/rules/README.md lists them.', hint)];
      }
      if (each.reason === '')
        return [
          finding(
            'this comment gives no reason and has no effect',
            `Give the reason: # ndots:ignore ${each.codes.join(',')} because REASON`,
          ),
        ];
      // A rule that did not run might have a finding in another run, so its suppression does not count as unused.
      return each.used || !each.codes.every((code) => this.#tried.has(code))
        ? []
        : [finding('this comment does not apply to any finding', 'Remove it.')];
    });
  }
}

function suppressionIn(line: string, file: string, number: number): Suppression[] {
  const start = line.indexOf('# ndots:ignore');
  if (start < 0) return [];
  const text = line.slice(start).trimEnd();
  const [, whole, rest = ''] = /^# ndots:ignore(-file)?(?:\s(.*))?$/.exec(text) ?? [];
  if (rest === '' && !/^# ndots:ignore(-file)?$/.test(text)) return [];
  const [first = '', ...words] = rest.trim().split(/\s+/);
  const codes = first.split(',').filter((code) => code !== '');
  const reason = (words[0] === 'because' ? words.slice(1) : words).join(' ');
  return [
    {
      file,
      line: number,
      column: start + 1,
      text,
      codes,
      reason,
      wholeFile: whole !== undefined,
      used: false,
    },
  ];
}
