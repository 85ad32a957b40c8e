/** Compares the answers given by two configurations, and groups differences that have the same cause. */
import { isAddressType } from '../../server/wire/iana.ts';
import type { PrintedRecord, QueryOutcome, DiffQuestion } from './question.ts';

/** Kinds of difference, starting with the most important: the answer, the upstream, the TTL (and flags). */
export type DifferenceKind = 'answers' | 'upstreams' | 'ttls';

/** Worst first. */
export const differences: readonly DifferenceKind[] = ['answers', 'upstreams', 'ttls'];

export interface ServedConfiguration {
  ask(question: DiffQuestion): Promise<QueryOutcome>;
  /** Advances time, in milliseconds. */
  pass(ms: number): Promise<void>;
  /** Silences upstreams, or lets them reply again. */
  silence(silent: boolean): void;
  /** Parts that are not compared, and why. */
  readonly left: readonly string[];
}

export type AskingMoment =
  | 'first'
  /** A second later, answered from the cache. */
  | 'again'
  | 'later'
  /** After the reply has expired, while no upstream is responding. */
  | 'stale';

/** A question whose answers differ. */
export interface Witness {
  readonly question: DiffQuestion;
  readonly moment: AskingMoment;
  readonly before: QueryOutcome;
  readonly after: QueryOutcome;
  readonly kind: DifferenceKind;
}

/** Example queries for one change. */
export interface ChangeClass {
  readonly kind: DifferenceKind;
  /** The simplest one. */
  readonly witness: Witness;
  readonly count: number;
  /** A few names, shortest first. */
  readonly names: readonly string[];
}

export interface Comparison {
  readonly questions: number;
  readonly same: number;
  readonly classes: readonly ChangeClass[];
  /** Parts that one side or both omitted. */
  readonly left: readonly string[];
}

/** Milliseconds until a name with a short TTL expires. */
const STALE_MS = 60_000;

/**
 * Sends every question to both sides: once, again a little later, and some of them a minute later, with and without
 * upstreams.
 * @param rounds `againMs` is the delay before the second round, and `later: false` skips the later rounds. `progress`
 * is called before each question with its number (from 1) and the total.
 */
export async function compare(
  before: ServedConfiguration,
  after: ServedConfiguration,
  questions: readonly DiffQuestion[],
  rounds: {
    readonly againMs?: number;
    readonly later?: boolean;
    readonly progress?: (at: number, of: number, moment: AskingMoment) => void;
  } = {},
): Promise<Comparison> {
  const { againMs = 1000, later = true, progress } = rounds;
  const found = new Map<DiffQuestion, Witness>();
  const round = async (asked: readonly DiffQuestion[], moment: AskingMoment): Promise<void> => {
    for (const [index, question] of asked.entries()) {
      progress?.(index + 1, asked.length, moment);
      const [a, b] = [await before.ask(question), await after.ask(question)];
      const kind = differenceOf(a, b);
      if (kind === null) continue;
      // A question is only used as an example of its worst difference.
      const known = found.get(question);
      if (known !== undefined && differences.indexOf(known.kind) <= differences.indexOf(kind))
        continue;
      found.set(question, { question, moment, before: a, after: b, kind });
    }
  };
  const pass = (ms: number): Promise<unknown> => Promise.all([before.pass(ms), after.pass(ms)]);
  await round(questions, 'first');
  await pass(againMs);
  await round(questions, 'again');
  if (later) {
    const short = questions.filter(({ name, type }) => name.startsWith('short-') && type === 1);
    await pass(STALE_MS);
    await round(short, 'later');
    await pass(STALE_MS);
    for (const side of [before, after]) side.silence(true);
    await round(short, 'stale');
    for (const side of [before, after]) side.silence(false);
  }
  return {
    questions: questions.length,
    same: questions.length - found.size,
    classes: classesOf([...found.values()]),
    left: [...new Set([...before.left, ...after.left])],
  };
}

/** Returns the worst difference, or null if a client or an upstream would see none. */
function differenceOf(before: QueryOutcome, after: QueryOutcome): DifferenceKind | null {
  const plain = ({ rcode, flags, answer, authority, additional }: QueryOutcome): string => {
    const isCut = flags.includes('tc');
    // It is arbitrary which records fit into a truncated reply.
    const records = isCut ? [] : contents([answer, authority, additional], dataText);
    return JSON.stringify([rcode, isCut, records]);
  };
  if (plain(before) !== plain(after)) return 'answers';
  const upstreams = ({ upstreams: list, asked }: QueryOutcome): string =>
    JSON.stringify([list, asked]);
  if (upstreams(before) !== upstreams(after)) return 'upstreams';
  const details = ({ flags, answer, authority, additional }: QueryOutcome): string =>
    JSON.stringify([
      flags,
      flags.includes('tc') ? [] : contents([answer, authority, additional], ttlText),
    ]);
  return details(before) === details(after) ? null : 'ttls';
}

/** The last number in an SOA is the TTL of negative answers (RFC 2308 section 4). */
const dataText = ({ name, type, data }: PrintedRecord): string =>
  `${name} ${type} ${type === 'SOA' ? data.replace(/ \d+$/, '') : data}`;
const ttlText = ({ name, ttl, type, data }: PrintedRecord): string =>
  `${name} ${ttl} ${type} ${data}`;

/** Records are compared in any order, because servers shuffle them. */
function contents(
  sections: readonly (readonly PrintedRecord[])[],
  print: (record: PrintedRecord) => string,
): readonly string[][] {
  return sections.map((list) => list.map(print).toSorted());
}

/** The number of names that a report shows for each class. */
const NAMES_MAX = 5;

function classesOf(witnesses: readonly Witness[]): readonly ChangeClass[] {
  // Prefer an address record, then the shortest name.
  const size = ({ question: { name, type } }: Witness): number =>
    (isAddressType(type) ? 0 : 1e6) + (name === '.' ? 30 : name.length) * 1000 + type;
  return [...Map.groupBy(witnesses, signature).values()]
    .map((group): ChangeClass => {
      const sorted = group.toSorted((a, b) => size(a) - size(b));
      const names = [...new Set(sorted.map(({ question }) => question.name))];
      return {
        kind: sorted[0]!.kind,
        witness: sorted[0]!,
        count: group.length,
        names: names.slice(0, NAMES_MAX),
      };
    })
    .toSorted(
      (a, b) =>
        differences.indexOf(a.kind) - differences.indexOf(b.kind) ||
        weight(b.witness) - weight(a.witness) ||
        b.count - a.count,
    );
}

/**
 * Ranks a loss by severity. Addresses from the server's own data, such as those of a service, matter most, followed by
 * its other records. Answers from upstreams are only simulated.
 */
function weight({ question, before: { answer, upstreams } }: Witness): number {
  if (answer.length === 0 || upstreams.length > 0) return 0;
  return isAddressType(question.type) ? 2 : 1;
}

/** The part that all examples of a change have in common. */
function signature({ kind, moment, before, after }: Witness): string {
  const by = ({ block, plugin }: QueryOutcome): readonly string[] => [block, plugin];
  const shape = (outcome: QueryOutcome): readonly unknown[] => {
    switch (kind) {
      case 'answers':
        // Losing a name that has an address is different from losing one that does not.
        return [...by(outcome), outcome.rcode, outcome.answer.length > 0];
      case 'upstreams':
        return by(outcome);
      case 'ttls':
        return by(outcome);
    }
  };
  return JSON.stringify([kind, moment === 'stale', shape(before), shape(after)]);
}
