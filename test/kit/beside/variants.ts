/**
 * Generates all Corefiles with at most one error, by changing each line of every CoreDNS property's examples in a few
 * ways.
 */
import type { Property } from '../../../tools/coredns/properties.ts';
import { corefileOf, linesOf, startedHere, type Line, type Scene } from './mistakes.ts';

/** A Corefile and how it was derived. */
export interface Variant {
  /** `cache success: twice, line 2`. */
  readonly label: string;
  readonly text: string;
}

/** Ways to change a line, which return null if they do not apply. */
const changes: Readonly<Record<string, (line: Line) => readonly Line[] | null>> = {
  'a word more': (line) => [[...withoutBrace(line), 'extra', ...braceOf(line)]],
  'a number more': (line) => [[...withoutBrace(line), '7', ...braceOf(line)]],
  'a word less': (line) =>
    withoutBrace(line).length < 2 ? null : [[...withoutBrace(line).slice(0, -1), ...braceOf(line)]],
  'its name alone': (line) =>
    withoutBrace(line).length < 3 ? null : [[line[0]!, ...braceOf(line)]],
  twice: (line) => (braceOf(line).length > 0 ? null : [line, line]),
  'twice on one line': (line) => (braceOf(line).length > 0 ? null : [[...line, ...line]]),
  'in upper case': ([word, ...rest]) => [[word!.toUpperCase(), ...rest]],
  'its last word in upper case': (line) => {
    const words = withoutBrace(line);
    const last = words.at(-1)!;
    if (words.length < 2 || last.includes('/') || last === last.toUpperCase()) return null;
    return [[...words.slice(0, -1), last.toUpperCase(), ...braceOf(line)]];
  },
  'an empty word more': (line) => [[...withoutBrace(line), '""', ...braceOf(line)]],
  'empty braces': (line) => (/[{}]/.test(line.join('')) ? null : [[...line, '{'], ['}']]),
  'braces with a word': (line) =>
    /[{}]/.test(line.join('')) ? null : [[...line, '{'], ['extra'], ['}']],
  'an unknown line': (line) => (line.at(-1) === '{' ? [line, ['unknown', 'line']] : null),
};

const wholes: Readonly<Record<string, (lines: readonly Line[]) => readonly Line[] | null>> = {
  unchanged: (lines) => lines,
  'words behind the brace': (lines) =>
    lines.some(([word]) => word === '}')
      ? lines.map((line) => (line[0] === '}' ? [...line, 'extra', '7'] : line))
      : null,
  'its last brace missing': (lines) =>
    lines.some(([word]) => word === '}') ? lines.filter(([word]) => word !== '}') : null,
  'all of it twice': (lines) => [...lines, ...lines],
  'nothing in its braces': (lines) => {
    const open = lines.findIndex((line) => line.at(-1) === '{');
    const close = lines.findLastIndex(([word]) => word === '}');
    return open < 0 || close < 0 ? null : [...lines.slice(0, open + 1), ...lines.slice(close)];
  },
  'no braces': (lines) => {
    const open = lines.findIndex((line) => line.at(-1) === '{');
    const close = lines.findLastIndex(([word]) => word === '}');
    if (open < 0 || close < 0) return null;
    return [...lines.slice(0, open), withoutBrace(lines[open]!), ...lines.slice(close + 1)];
  },
};

/** An example that several properties share is only used once. */
export function variants(scene: Scene): readonly Variant[] {
  const found = new Map<string, Variant>();
  const add = (name: string, property: Property, how: string, lines: readonly Line[]): void => {
    const label = `${`${name} ${property.name}`.trim()}: ${how}`;
    const text = corefileOf(property.key, lines, scene);
    if (!found.has(text)) found.set(text, { label, text });
    const cut = text.slice(0, text.lastIndexOf('}'));
    if (how === 'unchanged')
      found.set(cut, { label: `${label}, without the last brace`, text: cut });
  };
  for (const { name, property } of startedHere) {
    const lines = linesOf(property);
    for (const [how, whole] of Object.entries(wholes)) {
      const changed = whole(lines);
      if (changed !== null) add(name, property, how, changed);
    }
    for (const [how, change] of Object.entries(changes))
      lines.forEach((line, index) => {
        const changed = line.length === 0 || line[0] === '}' ? null : change(line);
        if (changed !== null)
          add(name, property, `${how}, line ${index + 1}`, lines.toSpliced(index, 1, ...changed));
      });
  }
  return [...found.values()];
}

function withoutBrace(line: Line): Line {
  return line.at(-1) === '{' ? line.slice(0, -1) : line;
}

function braceOf(line: Line): Line {
  return line.at(-1) === '{' ? ['{'] : [];
}
