/** The queries in a load test, which are those that clients send for a list of names, in order. */
import { Problem } from '../../server/base/problem.ts';
import { parseAnswerSpec } from '../resolver/answer-spec.ts';
import { emptyScript } from '../resolver/answers-file.ts';
import type { Client, Settings } from '../resolver/client.ts';
import { queryBytes } from '../resolver/query-bytes.ts';
import { planOnce } from '../resolver/run-lookup.ts';
import { typeNumber } from '../../server/wire/iana.ts';
import { NameError, parseName } from '../../server/wire/name.ts';
import { makeQuery, Query } from '../../server/transport/query.ts';

/** A longer list is an error, or exceeds what a run can send. */
const NAMES_MAX = 1_000_000;
/** In milliseconds of virtual time. A search that takes longer would never end. */
const LIMIT_MS = 60_000;

/** A line in a file. If it has no type, the name is looked up as a client would. With a type, it is a single query. */
export interface LoadName {
  readonly name: string;
  readonly type: string | null;
}

/**
 * Parses dnsperf files (`NAME TYPE`) and bare names, where `#` and `;` start comments.
 * @throws Problem with the line
 */
export function readNames(content: string, file: string): readonly LoadName[] {
  const names: LoadName[] = [];
  for (const [nth, line] of content.split('\n').entries()) {
    const [name, type, ...more] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/);
    if (name === undefined || name === '') continue;
    const wrong =
      more.length > 0 || (type !== undefined && typeNumber(type) === null) || !isName(name);
    if (wrong || names.length === NAMES_MAX)
      throw new Problem({
        code: 'load-names',
        text: wrong
          ? `"${line.trim().slice(0, 80)}" is not NAME or NAME TYPE`
          : `more than ${NAMES_MAX} names`,
        place: { file, line: nth + 1, column: 1 },
        remedy: 'Write one name per line, as in: redis.cache, or api.example.com AAAA',
      });
    names.push({ name, type: type ?? null });
  }
  if (names.length === 0)
    throw new Problem({
      code: 'load-names',
      text: `${file} has no names`,
      remedy: 'Write one name per line.',
    });
  return names;
}

function isName(text: string): boolean {
  try {
    return parseName(text.endsWith('.') ? text : `${text}.`).length > 1;
  } catch (error) {
    if (error instanceof NameError) return false;
    throw error;
  }
}

/**
 * Builds the queries for all names, one search after another. Searches come from the client model and only the last
 * candidate exists, which is what an external name costs in a pod.
 */
export async function loadQueries(
  names: readonly LoadName[],
  client: Client,
  settings: Settings,
): Promise<readonly Query[]> {
  const queries: Query[] = [];
  for (const { name, type } of names) {
    if (type === null) queries.push(...(await walkOf(name, client, settings)));
    else
      queries.push(makeQuery(parseName(name.endsWith('.') ? name : `${name}.`), typeNumber(type)!));
  }
  return queries;
}

async function walkOf(name: string, client: Client, settings: Settings): Promise<readonly Query[]> {
  const there = name.endsWith('.') ? name : `${name}.`;
  const answers = [parseAnswerSpec('192.0.2.1 2001:db8::1', name)];
  const rules = [{ server: null, name: there, type: '*', answers }];
  const script = { ...emptyScript, rules, delayMs: 1 };
  const { trace } = await planOnce({ client, name, settings, limitMs: LIMIT_MS }, script);
  return trace.exchanges.map((sent) => {
    const bytes = queryBytes({ ...sent, id: 0 });
    const query = new Query();
    query.read(bytes, 0, bytes.length);
    return query.keep();
  });
}
