/** A brace with no blank next to it, which the parser reads as part of a word, as CoreDNS does. */
import type { Advice } from './problems.ts';

/** A word that contains a brace, and what to write instead. */
export interface GluedBrace extends Advice {
  readonly hint: string;
  readonly remedy: string;
  /** The brace whose effect is lost. */
  readonly brace: '{' | '}';
  /** The words and braces, each group on a separate line: `['.:53 {', '}']` for `.:53{}`. */
  readonly lines: readonly string[];
}

/** Returns the brace that a bare word begins or ends with. Null if there is none, as in `{$NAME}` and `{{`. */
export function gluedBrace(word: string): GluedBrace | null {
  const lines = separated(word);
  if (lines === null) return null;
  const isKey = lines.length === 1;
  return {
    hint: `'${word}' is read as one word. Blanks or line breaks must separate a brace from other words.`,
    remedy: isKey
      ? `Write '${lines[0]}', with a blank before the {.`
      : `Write ${lines.map((line) => `'${line}'`).join(' and ')} on separate lines.`,
    brace: lines[0]!.endsWith('{') ? '{' : '}',
    lines,
  };
}

function separated(word: string): readonly string[] | null {
  const [, head, tail] = /^([^{}]+)(\{\}?)$/.exec(word) ?? [];
  if (head !== undefined && tail !== undefined)
    return tail === '{' ? [`${head} {`] : [`${head} {`, '}'];
  if (word === '{}') return ['{', '}'];
  const [, inside] = /^\{([^{}]+)$/.exec(word) ?? [];
  if (inside !== undefined) return ['{', inside];
  const [, last, ends] = /^([^{}]*)(\}+)$/.exec(word) ?? [];
  if (last === undefined || ends === undefined || word === '}') return null;
  return [...(last === '' ? [] : [last]), ...Array.from(ends, () => '}')];
}
