/** Parses YAML and JSON files to plain values, and records the position of each value. */
import type { Document, Scalar } from 'yaml';
import { isNoUtf8 } from '../../base/binary-text.ts';
import { Problem, type Place } from '../../base/problem.ts';
import {
  loadYaml,
  PIECE_MEMORY,
  YamlBoundError,
  yamlPieces,
  type AnyDocument,
} from './yaml-stream.ts';

/** The path to a value in a document: the keys and indexes that lead to it. */
export type DocumentPath = readonly (string | number)[];

/** One document in a YAML (or JSON) file, with the position of each of its parts in the file. */
export interface YamlDocument {
  readonly value: unknown;
  /** Returns the position of the value at `path`, or of the innermost enclosing value if it does not exist. */
  place(path: DocumentPath): Place;
}

/** A document, or an entry of the list in the next document. */
export interface YamlPart extends YamlDocument {
  /** Index of the entry in `items`, or null for a document. */
  readonly item: number | null;
  /** Length in characters of the file. */
  readonly length: number;
  /** Why there is no value. */
  readonly problem: Problem | null;
}

/** Maximum number of problems per file. Any more would not be informative, so the rest of the file is not read. */
const PROBLEMS_MAX = 100;

/** Parses all documents in a file. Documents with an error are skipped and reported as problems. */
export function parseYaml(
  content: string,
  file: string,
  memory: number = PIECE_MEMORY,
): { readonly documents: readonly YamlDocument[]; readonly problems: readonly Problem[] } {
  const documents: YamlDocument[] = [];
  const problems: Problem[] = [];
  for (const part of readYaml(content, file, { memory, entries: false }))
    if (part.problem === null) documents.push(part);
    else problems.push(part.problem);
  return { documents, problems };
}

/** Yields a file's content piece by piece (see `yamlPieces`), stopping where a limit is exceeded. */
export function* readYaml(
  content: string,
  file: string,
  { memory, entries }: { readonly memory: number; readonly entries: boolean },
): Generator<YamlPart> {
  const yaml = loadYaml();
  const lines = new Lines(content);
  const placeAt = (offset: number): Place => ({ file, ...lines.place(offset) });
  if (isNoUtf8(content)) {
    const place = { file, line: 1, column: 0 };
    const problem = new Problem({
      code: 'yaml-binary',
      text: `${file} is not YAML: it is binary, or text that is not UTF-8`,
      place,
    });
    yield { value: undefined, problem, item: null, length: 0, place: () => place };
    return;
  }
  let problems = 0;
  try {
    for (const { document, item, length } of yamlPieces(content, memory, entries)) {
      const value = valueOf(yaml, document, placeAt, content);
      const problem = value instanceof Problem ? value : null;
      yield {
        value: value instanceof Problem ? undefined : value.value,
        problem,
        item,
        length,
        place(path) {
          for (let count = path.length; count > 0; count--) {
            const node = document.getIn(path.slice(0, count), true);
            if (yaml.isNode(node) && node.range) return placeAt(node.range[0]);
          }
          return placeAt(document.contents?.range?.[0] ?? document.range[0]);
        },
      };
      if (problem !== null && ++problems >= PROBLEMS_MAX) return;
    }
  } catch (error) {
    if (!(error instanceof YamlBoundError)) throw error;
    const place = placeAt(error.offset);
    const hint = 'the rest of the file is not read';
    const problem = new Problem({ code: 'yaml-syntax', text: error.message, place, hint });
    yield { value: undefined, problem, item: null, length: 0, place: () => place };
  }
}

function valueOf(
  yaml: typeof import('yaml'),
  document: AnyDocument,
  placeAt: (offset: number) => Place,
  content: string,
): { readonly value: unknown } | Problem {
  const error = document.errors[0];
  if (error !== undefined) return syntaxProblem(error.message, placeAt(error.pos[0]), content);
  const twice = duplicateKey(yaml, document);
  if (twice !== null) {
    const text = `the key '${String(twice.value)}' appears twice in one mapping`;
    return new Problem({ code: 'yaml-syntax', text, place: placeAt(twice.range![0]) });
  }
  try {
    return { value: document.toJS({ maxAliasCount: 100 }) as unknown };
  } catch (fault) {
    return syntaxProblem((fault as Error).message, placeAt(document.range[0]), content);
  }
}

/**
 * Finds lines and columns without a table of all lines. This works because positions are requested nearly in file
 * order.
 */
class Lines {
  readonly #content: string;
  #offset = 0;
  #line = 1;

  constructor(content: string) {
    this.#content = content;
  }

  place(offset: number): { readonly line: number; readonly column: number } {
    const content = this.#content;
    // Go back line by line, because counting from the beginning could take a long time.
    for (; this.#offset > offset; this.#line--)
      this.#offset = this.#offset < 2 ? 0 : content.lastIndexOf('\n', this.#offset - 2) + 1;
    for (;;) {
      const next = content.indexOf('\n', this.#offset);
      if (next === -1 || next >= offset) break;
      this.#offset = next + 1;
      this.#line++;
    }
    return { line: this.#line, column: offset - this.#offset + 1 };
  }
}

function syntaxProblem(message: string, place: Place, content: string): Problem {
  const hint = /tab/i.test(message) ? 'YAML is indented with blanks, never with tabs' : undefined;
  return new Problem({
    code: 'yaml-syntax',
    text: `this is not YAML: ${message}`,
    place,
    ...(isTemplate(content) ? templateAdvice : { hint }),
  });
}

/** Advice for a Helm chart file that has not been rendered. */
export const templateAdvice = {
  hint: 'this is a Helm chart template, because it contains {{ … }}',
  remedy: 'render it first: helm template CHART > FILE.yaml',
} as const;

/**
 * Returns true if the text contains Go template braces. They are either not YAML or, worse, YAML with a different
 * meaning.
 */
export function isTemplate(content: string): boolean {
  return /\{\{-?\s*[.$a-z(]/.test(content);
}

/**
 * Returns true if a value begins with Go template braces, which YAML reads as a mapping within a key. Braces within
 * quotes and text blocks belong to alerts, or to values that a chart renders itself.
 */
export function hasTemplateKey(value: unknown): boolean {
  const seen = new Set<unknown>();
  const left = [value];
  for (let each = left.pop(); left.length > 0 || each !== undefined; each = left.pop()) {
    if (typeof each !== 'object' || each === null || seen.has(each)) continue;
    seen.add(each);
    if (!Array.isArray(each) && Object.keys(each).some((key) => /^\{ *['"]?[-.$a-z(]/i.test(key)))
      return true;
    left.push(...Object.values(each).filter((inner) => inner !== undefined));
  }
  return false;
}

/** Returns the first key that occurs twice in its mapping. Takes time linear in the document's size. */
function duplicateKey(yaml: typeof import('yaml'), document: Document): Scalar | null {
  const keys = new Set<string>();
  let twice: Scalar | null = null;
  yaml.visit(document, {
    Map(_, { items }) {
      keys.clear();
      for (const { key } of items) {
        if (!yaml.isScalar(key) || key.value === '<<') continue;
        const name = `${typeof key.value} ${String(key.value)}`;
        if (keys.has(name)) {
          twice = key;
          return yaml.visit.BREAK;
        }
        keys.add(name);
      }
      return undefined;
    },
  });
  return twice;
}
