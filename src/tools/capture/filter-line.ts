/**
 * Filters as a single line of text, as typed into a live view: `namespace=shop not rcode=NXDOMAIN`. Command line
 * filters use the same words and can be pasted unchanged.
 */
import { nearest, Problem } from '../../server/base/problem.ts';
import { filterOf, filterWords, type FilterWord, type GivenFilter } from './filter.ts';

const LINE_MAX = 4096;

/** Returns null if the text is not `word=value`. */
export function parseTerm(text: string, negated: boolean): GivenFilter | null {
  const equals = text.search(/[=:]/);
  if (equals < 0) return null;
  const word = filterWords.find((each) => each === text.slice(0, equals));
  return word === undefined ? null : { word, value: text.slice(equals + 1), negated };
}

/**
 * Parses a filter line. A term is `word=value`, `word:value`, `--word value` or `--word=value`, and is negated by
 * `not`, `--not`, `!` or `-`. A term without a `word` matches part of a name.
 * @throws Problem with code `usage`, also if a value is invalid for its word
 */
export function parseFilterLine(line: string): readonly GivenFilter[] {
  const filters: GivenFilter[] = [];
  let negated = false;
  let option: FilterWord | null = null;
  for (const part of line.slice(0, LINE_MAX).split(/\s+/)) {
    if (part === '' || part === 'and') continue;
    if (option !== null) {
      filters.push({ word: option, value: part, negated });
      option = null;
      negated = false;
      continue;
    }
    if (part === 'not' || part === '--not' || part === '!') {
      negated = true;
      continue;
    }
    const bare = filterWords.find((word) => part === `--${word}`);
    if (bare !== undefined) {
      option = bare;
      continue;
    }
    const isNegative = /^(?:!|-(?!-))./.test(part);
    filters.push(
      termOf(isNegative ? part.slice(1) : part.replace(/^--/, ''), negated || isNegative),
    );
    negated = false;
  }
  if (option !== null || negated) {
    const last = option === null ? 'not' : `--${option}`;
    throw new Problem({ code: 'usage', text: `${last} needs a value` });
  }
  // Parse it now to report errors while the user is typing.
  filterOf(filters, new Map(), '');
  return filters;
}

function termOf(text: string, negated: boolean): GivenFilter {
  const term = parseTerm(text, negated);
  if (term !== null) return term;
  const [, word] = /^([a-z-]+)[=:]/.exec(text) ?? [];
  if (word === undefined)
    return { word: 'name', value: text.includes('*') ? text : `*${text}*`, negated };
  const meant = nearest(word, filterWords);
  throw new Problem({
    code: 'usage',
    text: `there is no filter ${word}${meant === null ? '' : `; did you mean ${meant}?`}`,
    hint: `Filters: ${filterWords.join(', ')}`,
  });
}

/** The inverse of `parseFilterLine`. */
export function printFilterLine(filters: readonly GivenFilter[]): string {
  return filters
    .map(({ word, value, negated }) => `${negated ? 'not ' : ''}${word}=${value}`)
    .join(' ');
}

export function filterArguments(filters: readonly GivenFilter[]): readonly string[] {
  return filters.flatMap(({ word, value, negated }) =>
    negated ? ['--not', `${word}=${value}`] : [`--${word}`, value],
  );
}
