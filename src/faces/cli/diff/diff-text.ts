/** Prints the result of `ndots diff`. */
import {
  differences,
  type ChangeClass,
  type Comparison,
  type DifferenceKind,
} from '../../../tools/diff/compare.ts';
import type { QueryOutcome, DiffQuestion } from '../../../tools/diff/question.ts';
import { className, typeName } from '../../../server/wire/iana.ts';
import { count } from '../../../server/base/counted.ts';
import { listed } from '../../../tools/doctor/texts.ts';
import { pageFor, wrap, type Page } from '../page.ts';
import { coloured } from '../terminal.ts';

export interface DiffStyle {
  readonly before: string;
  readonly after: string;
  readonly colour: boolean;
  readonly columns: number;
}

const words: Readonly<Record<DifferenceKind, string>> = {
  answers: 'other answers',
  upstreams: 'other upstreams',
  ttls: 'other TTLs',
};

/** Suffixes that describe when a query is sent. */
export const moments = {
  first: '',
  again: ', when it is repeated',
  later: ', after its TTL',
  stale: ', after its TTL, while no upstream answers',
} as const;

/** Formats the result for people. */
export function printComparison(comparison: Comparison, style: DiffStyle): string {
  const { questions, same, classes, left } = comparison;
  const paint = (text: string, sgr: number): string => (style.colour ? coloured(text, sgr) : text);
  const page = pageFor({ colour: false, wide: false, columns: style.columns });
  const lines = [`${style.before} → ${style.after}`, ''];
  for (const each of classes) lines.push(...classLines(each, page, paint), '');
  if (left.length > 0)
    lines.push(...left.flatMap((text) => wrap(`not compared: ${text}`, '', page)), '');
  const totals = differences
    .map((kind) => ({ kind, number: classes.filter((each) => each.kind === kind).length }))
    .filter(({ number }) => number > 0)
    .map(({ kind, number }) => `${count(number, 'class', 'classes')} of ${words[kind]}`);
  const verdict = totals.length === 0 ? 'no answer changes' : totals.join(', ');
  const sum = `${count(questions, 'question', 'questions')}, ${same} with the same answers: ${verdict}`;
  lines.push(...wrap(sum, '', page));
  const upstreams = new Set(
    classes.flatMap(({ witness: { before, after } }) => [...before.upstreams, ...after.upstreams]),
  );
  if (upstreams.size > 0) lines.push(...wrap(simulatedText([...upstreams]), '', page));
  return `${lines.join('\n')}\n`;
}

function simulatedText(upstreams: readonly string[]): string {
  return `Upstreams (${listed(upstreams)}) were simulated: nothing was sent to them, and addresses in 198.18.0.0/15 and 2001:db8::/32 are invented.`;
}

function classLines(
  { kind, witness, count: number, names }: ChangeClass,
  page: Page,
  paint: (text: string, sgr: number) => string,
): string[] {
  const { question, before, after, moment } = witness;
  const others = names.filter((name) => name !== question.name);
  const more = number > 1 ? `   (${count(number, 'question', 'questions')})` : '';
  const side = (mark: string, one: QueryOutcome, other: QueryOutcome, sgr: number): string[] =>
    outcomeLines(one, other).flatMap(({ text, inner }) =>
      wrap(text, `  ${mark} ${inner ? '  ' : ''}`, page).map((line) => paint(line, sgr)),
    );
  const head = `${words[kind]}: ${questionText(question)}${moments[moment]}${more}`;
  return [
    ...wrap(head, '', page).map((line) => line.replace(words[kind], paint(words[kind], 1))),
    ...side('-', before, after, 31),
    ...side('+', after, before, 32),
    ...(others.length === 0 ? [] : wrap(others.join(' '), '  also ', page)),
  ];
}

/** `www.example.org. A`, followed by whatever is unusual about the query. */
export function questionText(question: DiffQuestion): string {
  const { name, type, client, address, port, proto, udpSize, dnssecOk } = question;
  const usual = question.class === 1 ? [] : [className(question.class)];
  const extra = [
    ...(proto === 'tcp' ? ['over TCP'] : []),
    ...(dnssecOk ? ['with DO'] : udpSize > 0 ? [`with a buffer of ${udpSize}`] : []),
    ...(address === '' ? [] : [`at ${address}`]),
    ...(port === 53 ? [] : [`port ${port}`]),
  ];
  return [name, ...usual, typeName(type), 'from', client, ...extra].join(' ');
}

/** Limit of records printed per section. */
const RECORDS_MAX = 3;

/** One side's reply: the server, then the records. */
export function outcomeLines(
  outcome: QueryOutcome,
  other: QueryOutcome,
): readonly { readonly text: string; readonly inner: boolean }[] {
  const { rcode, flags, answer, authority, additional, upstreams, asked, block, plugin } = outcome;
  const by = plugin === '' ? '' : `   by ${plugin} of ${block}`;
  const whom =
    upstreams.length === 0
      ? ''
      : `   asks ${upstreams.join(' ')}${asked > 1 ? ` (${asked} of them)` : ''}`;
  const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
  const records = [
    ...answer,
    ...(same(authority, other.authority) && answer.length > 0 ? [] : authority),
    ...(same(additional, other.additional) ? [] : additional),
  ];
  const shown = records
    .slice(0, RECORDS_MAX)
    .map(({ name, ttl, type, data }) => `${name} ${ttl} ${type} ${data}`);
  const more = records.length > RECORDS_MAX ? [`… ${records.length - RECORDS_MAX} more`] : [];
  const set = flags.length === 0 ? '' : ` ${flags.join(' ')}`;
  return [
    { text: `${rcode}${set}${by}${whom}`, inner: false },
    ...[...shown, ...more].map((text) => ({ text, inner: true })),
  ];
}

/** Builds the document for programs. */
export function comparisonDocument(
  comparison: Comparison,
  { before, after }: Pick<DiffStyle, 'before' | 'after'>,
): object {
  return {
    apiVersion: 'ndots.dev/v1',
    kind: 'ConfigurationDiff',
    before,
    after,
    questions: comparison.questions,
    same: comparison.same,
    notCompared: comparison.left,
    changes: comparison.classes.map(({ kind, count: number, names, witness }) => ({
      difference: kind,
      questions: number,
      names,
      witness: {
        ...witness.question,
        type: typeName(witness.question.type),
        class: className(witness.question.class),
        moment: witness.moment,
        before: witness.before,
        after: witness.after,
      },
    })),
  };
}
