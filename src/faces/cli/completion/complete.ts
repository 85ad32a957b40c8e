/**
 * Completes the word at the cursor. Shells run `ndots __complete WORD…`, where the last word is the one being typed.
 * The output is in cobra's format, which kubectl understands. Each candidate is followed by a tab and its description,
 * and the last line is a colon and the sum of the `DIRECTIVE` values.
 */
import type { OfferContext, Offers, Option, Usage } from '../option.ts';
import { isVerb, splitVerb, verbSummaries } from '../verb-names.ts';
import { isBuiltIn, loadUsage } from '../verbs.ts';

/** Instructions for the shell, with cobra's numbers. */
export const DIRECTIVE = { files: 0, noBlank: 2, noFiles: 4 } as const;

export interface Candidates {
  readonly list: readonly (readonly [word: string, meaning: string])[];
  readonly directive: number;
}

/** @param words all words after `ndots`, of which the last, possibly empty, is completed */
export async function complete(
  words: readonly string[],
  env: OfferContext['env'],
): Promise<Candidates> {
  const word = words.at(-1) ?? '';
  const [first, ...rest] = words.slice(0, -1);
  if (first === undefined) return noFiles([...verbSummaries, ['help', 'the help of a verb']], word);
  if (first === 'help') return noFiles(rest.length > 0 ? [] : [...verbSummaries], word);
  const { verb, own } = splitVerb(words.slice(0, -1));
  if (!isVerb(verb) || !isBuiltIn(verb)) return noFiles([], word);
  return ofVerb(await loadUsage(verb), { word, before: own, env });
}

/** @returns the output of `ndots __complete` */
export function printCandidates({ list, directive }: Candidates): string {
  const lines = list.map(([word, meaning]) => (meaning === '' ? word : `${word}\t${meaning}`));
  return `${[...lines, `:${directive}`].join('\n')}\n`;
}

async function ofVerb(usage: Usage, context: OfferContext): Promise<Candidates> {
  const { word, before } = context;
  const options = Object.values(usage.options);
  const waiting = options.find((option) => takesNext(option, before.at(-1) ?? ''));
  if (waiting !== undefined) return offered(waiting.value?.offers, context, '');
  const equals = word.indexOf('=');
  if (/^[-+]/.test(word) && equals > 0) {
    const option = options.find(({ names }) => names.includes(word.slice(0, equals)));
    const rest = { ...context, word: word.slice(equals + 1) };
    return offered(option?.value?.offers, rest, word.slice(0, equals + 1));
  }
  if (!/^[-+]/.test(word)) {
    const found = await offered(usage.words ?? {}, context, '');
    // A second action is not allowed.
    const acts = !usage.words?.list && before.some((each) => isOneOf(usage.words?.words, each));
    const left = acts ? { ...found, list: [] } : found;
    if (word !== '' || usage.words !== undefined) return left;
  }
  const names = options.flatMap(({ names: all, help }) =>
    all.map((name) => [word.startsWith('+no') ? `+no${name.slice(1)}` : name, help] as const),
  );
  return noFiles([...names, ['--help', 'this verb explained']], word);
}

function isOneOf(words: Offers['words'], word: string): boolean {
  return Array.isArray(words) && words.includes(word);
}

/** True if the next word is the value for this option. */
function takesNext({ names, kind }: Option, last: string): boolean {
  return (kind === 'one' || kind === 'many') && !last.startsWith('+') && names.includes(last);
}

async function offered(
  offers: Offers | undefined,
  context: OfferContext,
  prefix: string,
): Promise<Candidates> {
  if (offers === undefined) return { list: [], directive: DIRECTIVE.noFiles };
  const { words = [], files = false, list = false } = offers;
  const comma = list ? context.word.lastIndexOf(',') + 1 : 0;
  const typed = context.word.slice(0, comma);
  const word = context.word.slice(comma);
  const known = typeof words === 'function' ? await words({ ...context, word }) : words;
  const matching = known.filter((each) => each.startsWith(word));
  const open = list || matching.some((each) => each.endsWith('/'));
  return {
    list: matching.map((each) => [`${prefix}${typed}${each}`, ''] as const),
    directive: (files ? DIRECTIVE.files : DIRECTIVE.noFiles) | (open ? DIRECTIVE.noBlank : 0),
  };
}

function noFiles(list: Candidates['list'], word: string): Candidates {
  const matching = list.filter(([each]) => each.startsWith(word));
  return { list: matching, directive: DIRECTIVE.noFiles };
}
