/**
 * Label selectors in the API's syntax: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. The API server evaluates them itself;
 * this is for sources that have no server.
 */
export type Selector = (labels: Readonly<Record<string, string>>) => boolean;

/** The selector's meaning; null if it is malformed. `''` selects everything. */
export function parseSelector(text: string): Selector | null {
  const terms: Selector[] = [];
  for (const term of splitTerms(text)) {
    const parsed = parseTerm(term.trim());
    if (parsed === null) return null;
    terms.push(parsed);
  }
  return (labels) => terms.every((term) => term(labels));
}

/** Whether the labels have every pair of `wanted`: the form services and workloads use. An empty map selects nothing. */
export function matchesPairs(
  wanted: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>>,
): boolean {
  const pairs = Object.entries(wanted);
  return pairs.length > 0 && pairs.every(([key, value]) => labels[key] === value);
}

/** At commas that stand outside parentheses. */
function splitTerms(text: string): string[] {
  if (text.trim() === '') return [];
  const terms: string[] = [];
  let begin = 0;
  let inside = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(' || text[at] === ')') inside = text[at] === '(';
    if (text[at] !== ',' || inside) continue;
    terms.push(text.slice(begin, at));
    begin = at + 1;
  }
  return [...terms, text.slice(begin)];
}

function parseTerm(term: string): Selector | null {
  const set = /^([^\s=!,()]+)\s+(in|notin)\s*\(([^()]*)\)$/.exec(term);
  if (set !== null) {
    const [, key, word, list] = set;
    const values = list!.split(',').map((value) => value.trim());
    const inside = word === 'in';
    return (labels) => {
      const value = labels[key!];
      return value === undefined ? !inside : values.includes(value) === inside;
    };
  }
  const pair = /^([^\s=!,()]+)\s*(==|=|!=)\s*([^\s=!,()]*)$/.exec(term);
  if (pair !== null) {
    const [, key, sign, value] = pair;
    return sign === '!=' ? (labels) => labels[key!] !== value : (labels) => labels[key!] === value;
  }
  const presence = /^(!?)\s*([^\s=!,()]+)$/.exec(term);
  if (presence === null) return null;
  const absent = presence[1] === '!';
  return (labels) => (labels[presence[2]!] === undefined) === absent;
}
