/**
 * Label selectors in the API's syntax: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`. An API server evaluates them itself,
 * so this is for sources without a server.
 */
export type Selector = (labels: Readonly<Record<string, string>>) => boolean;

/** Parses a selector. Returns null if it is malformed. `''` selects everything. */
export function parseSelector(text: string): Selector | null {
  const terms: Selector[] = [];
  for (const term of splitTerms(text)) {
    const parsed = parseTerm(term.trim());
    if (parsed === null) return null;
    terms.push(parsed);
  }
  return (labels) => terms.every((term) => term(labels));
}

/**
 * Returns true if the labels contain every pair in `wanted`, which is the form used by services and workloads. An empty
 * map selects nothing.
 */
export function matchesPairs(
  wanted: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>>,
): boolean {
  const pairs = Object.entries(wanted);
  return pairs.length > 0 && pairs.every(([key, value]) => labels[key] === value);
}

/** Splits at commas outside parentheses. */
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
  const [, not, key] = /^(!?)\s*([^\s=!,()<>]+)/.exec(term) ?? [];
  if (key === undefined || !isKey(key)) return null;
  const rest = term.slice(term.indexOf(key) + key.length).trim();
  if (rest === '') return (labels) => (labels[key] === undefined) === (not === '!');
  return not === '!' ? null : parseCondition(key, rest);
}

function parseCondition(key: string, text: string): Selector | null {
  const [, word, list] = /^(in|notin)\s*\(([^()]*)\)$/.exec(text) ?? [];
  if (list !== undefined) {
    const values = list.split(',').map((value) => value.trim());
    const inside = word === 'in';
    if (!values.every(isValue)) return null;
    return (labels) => {
      const value = labels[key];
      return value === undefined ? !inside : values.includes(value) === inside;
    };
  }
  const [, sign, value] = /^(==|=|!=|<|>)\s*([^\s=!,()<>]*)$/.exec(text) ?? [];
  if (value === undefined || !isValue(value)) return null;
  if (sign === '!=') return (labels) => labels[key] !== value;
  if (sign !== '<' && sign !== '>') return (labels) => labels[key] === value;
  const bound = numberOf(value);
  if (bound === null) return null;
  return (labels) => {
    const found = numberOf(labels[key] ?? '');
    return found !== null && (sign === '<' ? found < bound : found > bound);
  };
}

/**
 * Returns true if the text has the form of a label key, `[prefix/]name` (Kubernetes: labels and selectors, syntax and
 * character set).
 */
function isKey(key: string): boolean {
  const [name = '', prefix, ...more] = key.split('/').toReversed();
  const isPrefix =
    prefix === undefined ||
    (prefix.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(prefix));
  return isPrefix && more.length === 0 && name !== '' && isValue(name);
}

function isValue(value: string): boolean {
  return value.length <= 63 && /^([A-Za-z0-9]([-\w.]*[A-Za-z0-9])?)?$/.test(value);
}

function numberOf(text: string): bigint | null {
  return /^[-+]?\d+$/.test(text) ? BigInt(text) : null;
}
