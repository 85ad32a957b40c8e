import { createRequire } from 'node:module';
import type { Document, Scalar } from 'yaml';
import { Problem, type Place } from '../../base/problem.ts';

/** One document of a YAML (or JSON) file, and where in the file each of its parts stands. */
export interface YamlDocument {
  readonly value: unknown;
  /** Where the value at `path` begins; of the innermost enclosing value if there is none. */
  place(path: readonly (string | number)[]): Place;
}

/** All documents of a file; those with an error are left out and told as problems. */
export function parseYaml(
  content: string,
  file: string,
): { readonly documents: readonly YamlDocument[]; readonly problems: readonly Problem[] } {
  const yaml = loadYaml();
  const lines = new yaml.LineCounter();
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(1, line), column: col };
  };
  const parsed = yaml.parseAllDocuments(content, {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
    // The parser's own check compares each key with each other one; `duplicateKey` looks each up.
    uniqueKeys: false,
  });
  const documents: YamlDocument[] = [];
  const problems: Problem[] = [];
  for (const document of Array.isArray(parsed) ? parsed : []) {
    const error = document.errors[0];
    if (error !== undefined) {
      problems.push(syntaxProblem(error.message, placeAt(error.pos[0]), content));
      continue;
    }
    const twice = duplicateKey(yaml, document);
    if (twice !== null) {
      const text = `the key '${String(twice.value)}' stands twice in one mapping`;
      problems.push(new Problem({ code: 'yaml-syntax', text, place: placeAt(twice.range![0]) }));
      continue;
    }
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount: 100 });
    } catch (fault) {
      problems.push(syntaxProblem((fault as Error).message, placeAt(document.range[0]), content));
      continue;
    }
    documents.push({
      value,
      place(path) {
        for (let length = path.length; length > 0; length--) {
          const node = document.getIn(path.slice(0, length), true);
          if (yaml.isNode(node) && node.range) return placeAt(node.range[0]);
        }
        return placeAt(document.contents?.range?.[0] ?? document.range[0]);
      },
    });
  }
  return { documents, problems };
}

function syntaxProblem(message: string, place: Place, content: string): Problem {
  const deep = /call stack/i.test(message);
  const hint = /tab/i.test(message) ? 'YAML is indented with blanks, never with tabs' : undefined;
  return new Problem({
    code: 'yaml-syntax',
    text: deep ? 'this is nested too deeply to be read' : `this is no YAML: ${message}`,
    place,
    ...(isTemplate(content) && !deep ? templateAdvice : { hint }),
  });
}

/** What to say of a file of a Helm chart, before it went through Helm. */
export const templateAdvice = {
  hint: 'this is a template of a Helm chart: it has {{ … }} in it',
  remedy: 'serve what it makes: helm template CHART > FILE.yaml',
} as const;

/** Whether it has the braces of Go's templates, which are no YAML or, worse, YAML that means something else. */
export function isTemplate(content: string): boolean {
  return /\{\{-?\s*[.$a-z(]/.test(content);
}

/** The first key that stands in its mapping a second time. Time linear in the size of the document. */
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

let loaded: typeof import('yaml') | null = null;

/** The parser is large and a server that watches an API server never needs it: loaded on first use. */
function loadYaml(): typeof import('yaml') {
  loaded ??= createRequire(import.meta.url)('yaml') as typeof import('yaml');
  return loaded;
}
