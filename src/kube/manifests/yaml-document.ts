import { createRequire } from 'node:module';
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
    uniqueKeys: true,
  });
  const documents: YamlDocument[] = [];
  const problems: Problem[] = [];
  for (const document of Array.isArray(parsed) ? parsed : []) {
    const error = document.errors[0];
    if (error !== undefined) {
      problems.push(syntaxProblem(error.message, placeAt(error.pos[0])));
      continue;
    }
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount: 100 });
    } catch (fault) {
      problems.push(syntaxProblem((fault as Error).message, placeAt(document.range[0])));
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

function syntaxProblem(message: string, place: Place): Problem {
  return new Problem({
    code: 'yaml-syntax',
    text: `this is no YAML: ${message}`,
    place,
    hint: /tab/i.test(message) ? 'YAML is indented with blanks, never with tabs' : undefined,
  });
}

let loaded: typeof import('yaml') | null = null;

/** The parser is large and a server that watches an API server never needs it: loaded on first use. */
function loadYaml(): typeof import('yaml') {
  loaded ??= createRequire(import.meta.url)('yaml') as typeof import('yaml');
  return loaded;
}
