/** Finds braces that are part of a word, so that the lines after them are in the wrong block. */
import type { Place } from '../../server/base/problem.ts';
import { gluedBrace, type GluedBrace } from '../../server/corefile/glued-brace.ts';
import { lex } from '../../server/corefile/lex.ts';
import type { BraceFault } from './brace-lines.ts';

/**
 * The words that contain a brace. Words on a line whose braces match are not included, because templates and
 * expressions contain such braces.
 */
export function gluedBraces(file: string, text: string): readonly BraceFault[] {
  const byLine = Map.groupBy(lex(text, file).tokens, ({ place }) => place.line);
  return [...byLine.values()].flatMap((tokens) => {
    const bare = tokens.filter((token) => !token.quoted);
    const words = bare.filter((token) => token.text !== '{' && token.text !== '}');
    const isEmptyBlock = words.some((token) => token.text.endsWith('{}'));
    if (depthOf(words.map((token) => token.text).join(' ')) === 0 && !isEmptyBlock) return [];
    const faults = words.flatMap(({ text: word, place }) => {
      const glued = gluedBrace(word);
      return glued === null ? [] : [gluedFault(word, glued, place)];
    });
    const last = bare.at(-1);
    const isOneLine = faults.length > 0 && last?.text === '}' && last !== bare[0];
    return isOneLine ? [...faults, endFault(last.place)] : faults;
  });
}

function gluedFault(word: string, glued: GluedBrace, { line, column }: Place): BraceFault {
  const { brace, hint, remedy, lines } = glued;
  const effect = brace === '{' ? 'opens no block' : 'closes no block';
  const text = `the ${brace} in '${word}' ${effect}`;
  const correction = { word, lines };
  return { line, column, text, hint, remedy, loses: true, lead: '', correction };
}

/** The fault of a block that is written on one line. */
function endFault({ line, column }: Place): BraceFault {
  return {
    line,
    column,
    text: 'this } closes no block',
    hint: 'A } must be the first word of its line.',
    remedy: 'Put the } on a separate line.',
    loses: true,
    lead: '',
    correction: { word: '}', lines: ['}'] },
  };
}

/** The number of opening braces minus that of closing ones. */
function depthOf(words: string): number {
  return words.split('{').length - words.split('}').length;
}
