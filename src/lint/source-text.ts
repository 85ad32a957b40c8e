/**
 * A text to be read as a Corefile, and where each of its places stands in the file that a person edits: it may be a file of its
 * own, a key of a ConfigMap, or be put together from the values of a Helm chart.
 */
import type { Place } from '../base/problem.ts';

/** Where one line of the text stands: the file's line, and how much further to the right. */
export interface LineOrigin {
  readonly line: number;
  /** Columns of the file before the first one of the text's line. */
  readonly shift: number;
  /** False: the line is written another way in the file (a quoted text), so only its beginning is known. */
  readonly exact: boolean;
}

/** One text that is read as (a part of) a Corefile. */
export class SourceText {
  /** Names the text in places; unique. */
  readonly label: string;
  /** The file that holds it. */
  readonly file: string;
  /** The part of the file; null: all of it. */
  readonly within: string | null;
  readonly text: string;
  readonly #lines: readonly string[];
  readonly #origins: readonly LineOrigin[] | null;
  readonly #replaced: ReadonlyMap<number, readonly Replaced[]>;

  /** @param origins by line of the text; null: it is the file itself */
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

  /** Whether it has variables that node-cache, or who installs it, replaces. */
  get hasVariables(): boolean {
    return this.#replaced.size > 0;
  }

  /** Whether what stands there is a value that was put in for a variable: a usual one, and perhaps not that of the cluster. */
  isAssumed({ line, column }: Pick<Place, 'line' | 'column'>): boolean {
    return (this.#replaced.get(line) ?? []).some(
      ({ start, grown, length }) => column >= start && column < start + length + grown,
    );
  }

  /** The place in the file. */
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
    return { file, line: origin.line, column: at + origin.shift, exact: exact && origin.exact };
  }

  /** The line as a person wrote it; null: there is no such line. */
  written(line: number): string | null {
    return this.#lines[line - 1]?.replace(/\r$/, '') ?? null;
  }
}

/** A variable that gave way to a value on a line: from which column (of the new text), by how much longer, and how long it was. */
interface Replaced {
  readonly start: number;
  readonly length: number;
  readonly grown: number;
}

/** Values as usual as any for the variables of templates (node-cache, the add-on, k3s), so that what is around them can be judged. */
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
      replaced.set(index + 1, [...(replaced.get(index + 1) ?? []), entry]);
      grownBefore += grown;
      return value;
    });
  });
  return { text: lines.join('\n'), replaced };
}
