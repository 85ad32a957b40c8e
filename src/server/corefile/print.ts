import { needsQuotes } from './lex.ts';
import type { Corefile, Directive, Property, ServerBlock, Token } from './corefile-tree.ts';

/**
 * The canonical text of a Corefile: blocks separated by an empty line, four blanks per level, imports and environment
 * references replaced. Parsing it gives the same tree except for the places.
 *
 * Comments are lost. Words keep their quotes, and get some where they need them.
 */
export function printCorefile({ blocks }: Pick<Corefile, 'blocks'>): string {
  return blocks.map(printBlock).join('\n');
}

function printBlock({ keys, directives }: ServerBlock): string {
  const lines: string[] = [];
  for (const directive of directives) addLine(lines, directive.at, directive, 1);
  return [`${printKeys(keys)} {`, ...lines, '}', ''].join('\n');
}

function printKeys(keys: ServerBlock['keys']): string {
  const words = keys
    // The zones of one CIDR have the same place, because they were one word.
    .filter(({ place }, at) => at === 0 || keys[at - 1]!.place !== place)
    // The parser removes one comma, so a key that ends in one, and was not the last, had two.
    .map(({ text }) => printWord(/,$|^[{}]$/.test(text) ? `${text},` : text, false));
  // An empty word is skipped by the parser. Written before `import` or a byte order mark, it makes these ordinary
  // words.
  const special = words[0] === 'import' || words[0]?.startsWith('\uFEFF');
  return special ? `"" ${words.join(' ')}` : words.join(' ');
}

function addLine(
  lines: string[],
  name: Token,
  { args, block }: Directive | Property,
  depth: number,
): void {
  const indent = '    '.repeat(depth);
  const words = [name, ...args].map(({ text, quoted }) => printWord(text, quoted)).join(' ');
  const line = block === null ? words : `${words} {`;
  // At the beginning of a line it would be an import; the original followed a brace.
  if (name.text === 'import' && lines.length > 0) lines.push(`${lines.pop()} ${line}`);
  else lines.push(indent + line);
  if (block === null) return;
  for (const property of block) addLine(lines, property.name, property, depth + 1);
  lines.push(`${indent}}`);
}

/**
 * A word as it must be written. A text that cannot be quoted (a lone backslash before a quote) is written as closely as
 * possible.
 */
function printWord(text: string, quoted: boolean): string {
  if (!quoted && !needsQuotes(text)) return text;
  return `"${text.replaceAll('"', '\\"')}"`;
}
