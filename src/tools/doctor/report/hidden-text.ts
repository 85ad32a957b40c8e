/** Replaces names and addresses of a capture in a text. */
import type { Observations } from '../observe/observations.ts';
import type { Redaction } from '../../capture/redaction.ts';

/**
 * Between blanks: those within a name are escaped (RFC 1035 section 5.1), and names may hold any
 * other punctuation.
 */
const TOKEN = /\S+/g;
/**
 * The characters of most names and addresses, next to other text; punctuation at the end does not
 * belong to them.
 */
const WORD = /[\w:*-][\w.:*-]*/g;
/** Punctuation around a word, and the most characters of it. */
const OPENING = '("\'[{<';
const CLOSING = '.,;:!?)"\']}>';
const AROUND_MAX = 4;

/** @returns a function that replaces all that the capture names, and leaves other words alone */
export function hiddenText(observed: Observations, redaction: Redaction): (text: string) => string {
  const names = new NameParts(observed.names.list.map(({ name }) => name));
  const addresses = new Set<string>();
  for (const { addresses: found } of observed.names.list)
    for (const address of found) addresses.add(address);
  for (const list of [observed.clients.list, observed.servers.list, observed.backends.list])
    for (const { address } of list) addresses.add(address);
  for (const { server, clients } of observed.contacts.at(observed.lastMs))
    for (const address of [server, ...clients.keys()]) addresses.add(address);
  for (const { stray } of observed.strays) addresses.add(stray!.address);
  /** The pseudonym; null: the capture does not name it. @param rest what follows in the text */
  const hidden = (bare: string, rest: string): string | null => {
    if (addresses.has(bare)) return redaction.address(bare);
    // Single words may be of the text itself; a label among them is replaced only where a dot shows
    // that it is one.
    const isName = (bare.includes('.') || rest.startsWith('.')) && names.has(bare);
    return isName ? redaction.name(bare) : null;
  };
  const glued = (token: string): string =>
    token.replaceAll(WORD, (word) => {
      const bare = word.slice(0, endOf(word, '.:', Infinity));
      const rest = word.slice(bare.length);
      return (hidden(bare, rest) ?? bare) + rest;
    });
  return (text) =>
    text.replaceAll(TOKEN, (token) => {
      const least = endOf(token, CLOSING, AROUND_MAX);
      for (let from = 0; ; from++) {
        for (let to = token.length; to >= least && to > from; to--) {
          const rest = token.slice(to);
          const made = hidden(token.slice(from, to), rest);
          if (made !== null) return token.slice(0, from) + made + rest;
        }
        if (from === AROUND_MAX || !OPENING.includes(token[from] ?? ' ')) return glued(token);
      }
    });
}

/** The end of the text without up to `most` of these characters. */
function endOf(text: string, marks: string, most: number): number {
  let end = text.length;
  while (end > 0 && text.length - end < most && marks.includes(text[end - 1]!)) end--;
  return end;
}

/** Names and their parts at a dot: a name, the part before its search domain, and its suffix. */
class NameParts {
  /** Absolute, sorted; names with a common beginning are neighbours. */
  readonly #forward: readonly string[];
  /** The same, read from their ends. */
  readonly #backward: readonly string[];

  constructor(names: readonly string[]) {
    this.#forward = names.toSorted();
    this.#backward = names.map(reversed).toSorted();
  }

  has(part: string): boolean {
    return (
      hasBeginning(this.#forward, `${part}.`) || hasBeginning(this.#backward, reversed(`.${part}.`))
    );
  }
}

function hasBeginning(sorted: readonly string[], beginning: string): boolean {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sorted[middle]! < beginning) from = middle + 1;
    else to = middle;
  }
  return sorted[from]?.startsWith(beginning) ?? false;
}

/** The characters of a name are of ASCII. */
function reversed(text: string): string {
  return text.split('').toReversed().join('');
}
