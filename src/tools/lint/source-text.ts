/**
 * Text to parse as a Corefile, and where each of its parts is in the file that you edit. The text is a file, a key in a
 * ConfigMap, or generated from a Helm chart's values.
 */
import { appendTo } from '../../server/base/append-to.ts';
import type { Place } from '../../server/base/problem.ts';

/** The place of a line in the text, given as a line in the file and an offset for its columns. */
export interface LineOrigin {
  readonly line: number;
  /** The number of columns in the file before the first column of the text's line. */
  readonly shift: number;
  /** False if the line looks different in the file because it is quoted, so that only its beginning is known. */
  readonly exact: boolean;
  /** The place where the line continues from this column on, if that is somewhere else. */
  readonly rest?: LineOrigin & { readonly from: number };
}

/** A text that is parsed as a Corefile or as part of one. */
export class SourceText {
  /** Identifies the text in places; unique. */
  readonly label: string;
  readonly file: string;
  /** The part of the file, or null for the whole file. */
  readonly within: string | null;
  readonly text: string;
  readonly #lines: readonly string[];
  readonly #origins: readonly LineOrigin[] | null;
  readonly #replaced: ReadonlyMap<number, readonly Replaced[]>;

  /** @param origins the place of each line in the text; null if the text is the file itself */
  constructor(parts: {
    readonly label: string;
    readonly file: string;
    readonly within: string | null;
    readonly text: string;
    readonly origins: readonly LineOrigin[] | null;
  }) {
    const { text, replaced } = replaceVariables(parts.text);
    this.label = parts.label;
    this.file = parts.file;
    this.within = parts.within;
    this.text = text;
    this.#lines = parts.text.split('\n');
    this.#origins = parts.origins;
    this.#replaced = replaced;
  }

  /** True if it contains variables that node-cache or an installer replaces. */
  get hasVariables(): boolean {
    return this.#replaced.size > 0;
  }

  /** True if the word at this place is assumed for a variable, so that the cluster may use another value. */
  isAssumed({ line, column }: Pick<Place, 'line' | 'column'>): boolean {
    return (this.#replaced.get(line) ?? []).some(
      ({ start, grown, length }) => column >= start && column < start + length + grown,
    );
  }

  /** The corresponding place in the file. */
  outside({ line, column }: Pick<Place, 'line' | 'column'>): Place & { readonly exact: boolean } {
    let at = column;
    let exact = true;
    for (const { start, grown, length } of this.#replaced.get(line) ?? []) {
      if (column >= start + length + grown) at -= grown;
      else if (column > start) {
        at = Math.min(at, start);
        exact = false;
      }
    }
    const { file } = this;
    if (this.#origins === null) return { file, line, column: at, exact };
    const origin = this.#origins[line - 1] ?? this.#origins.at(-1);
    if (origin === undefined) return { file, line: 1, column: 1, exact: false };
    const { rest } = origin;
    const part = rest !== undefined && at >= rest.from ? rest : origin;
    return { file, line: part.line, column: at + part.shift, exact: exact && part.exact };
  }

  /** `text`, in which places in this source (`LABEL:LINE`) are converted to places in the file. */
  placedText(text: string, label: string): string {
    if (this.#origins === null || !text.includes(`${label}:`)) return text;
    const [head = '', ...tails] = text.split(`${label}:`);
    const placed = tails.map((tail) => {
      const number = /^\d+/.exec(tail)?.[0];
      if (number === undefined) return `${label}:${tail}`;
      const { file, line } = this.outside({ line: Number(number), column: 1 });
      return `${file}:${line}${tail.slice(number.length)}`;
    });
    return head + placed.join('');
  }

  /** The lines as they were before variables were replaced. */
  get writtenLines(): readonly string[] {
    return this.#lines;
  }

  /**
   * The same part of the file with other lines.
   *
   * @param label identifies the new text
   * @param lines the new lines, each with the number of the line in this text that it comes from
   */
  withLines(
    label: string,
    lines: readonly { readonly text: string; readonly from: number }[],
  ): SourceText {
    const origins = lines.map(({ from }) =>
      this.#origins === null
        ? { line: from, shift: 0, exact: true }
        : (this.#origins[from - 1] ?? this.#origins.at(-1)!),
    );
    const { file, within } = this;
    const text = lines.map((each) => each.text).join('\n');
    return new SourceText({ label, file, within, text, origins });
  }

  /** A line as it was before variables were replaced, or null if there is no such line. */
  written(line: number): string | null {
    return this.#lines[line - 1]?.replace(/\r$/, '') ?? null;
  }
}

/**
 * A variable that was replaced on a line, with its column in the new text, the difference in length, and its own
 * length.
 */
interface Replaced {
  readonly start: number;
  readonly length: number;
  readonly grown: number;
}

/** Usual values for template variables (node-cache, the add-on, k3s), so that the rest of the text can be checked. */
const variables: Readonly<Record<string, string>> = {
  __PILLAR__DNS__DOMAIN__: 'cluster.local',
  __DNS__DOMAIN__: 'cluster.local',
  __PILLAR__LOCAL__DNS__: '169.254.20.10',
  __PILLAR__DNS__SERVER__: '10.96.0.10',
  __PILLAR__CLUSTER__DNS__: '10.96.0.11',
  __PILLAR__UPSTREAM__SERVERS__: '/etc/resolv.conf',
  '%{CLUSTER_DOMAIN}%': 'cluster.local',
  '%{NODE_HOSTS}%': '',
};

const variable = /__(?:PILLAR__)?[A-Z]+__[A-Z]+__|%\{[A-Z_]{1,40}\}%/g;

function replaceVariables(text: string): {
  readonly text: string;
  readonly replaced: ReadonlyMap<number, readonly Replaced[]>;
} {
  const replaced = new Map<number, Replaced[]>();
  if (!text.includes('__') && !text.includes('%{')) return { text, replaced };
  const lines = text.split('\n').map((line, index) => {
    let grownBefore = 0;
    return line.replace(variable, (name, offset: number) => {
      const value = variables[name];
      if (value === undefined) return name;
      const grown = value.length - name.length;
      const entry = { start: offset + grownBefore + 1, length: name.length, grown };
      appendTo(replaced, index + 1, entry);
      grownBefore += grown;
      return value;
    });
  });
  return { text: lines.join('\n'), replaced };
}
