import { needsQuotes } from './lex.ts';
import type { Corefile, Directive, Property, ServerBlock, Token } from './corefile-tree.ts';

/**
 * Prints a Corefile in canonical form, with an empty line between blocks and four blanks per level. Imports and
 * environment references are replaced. Parsing the result gives the same tree except for the positions. Comments are
 * lost. Quoted words stay quoted, and quotes are added where necessary.
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
    // Zones from one CIDR have the same position, because they were one word.
    .filter(({ place }, at) => at === 0 || keys[at - 1]!.place !== place)
    // The parser removes one comma. If a key other than the last one ends in a comma, there must have been two.
    .map(({ text }) => printWord(/,$|^[{}]$/.test(text) ? `${text},` : text, false));
  // The parser skips empty words. Placed before `import` or a byte order mark, an empty word makes them ordinary words.
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
  // At the start of a line, it would be an import; in the original, it followed a brace.
  if (name.text === 'import' && lines.length > 0) lines.push(`${lines.pop()} ${line}`);
  else lines.push(indent + line);
  if (block === null) return;
  for (const property of block) addLine(lines, property.name, property, depth + 1);
  lines.push(`${indent}}`);
}

/**
 * Prints a word, with quotes if necessary. A text that cannot be quoted (a lone backslash before a quote) is printed as
 * closely as possible.
 */
function printWord(text: string, quoted: boolean): string {
  if (!quoted && !needsQuotes(text)) return text;
  return `"${text.replaceAll('"', '\\"')}"`;
}
