import { needsQuotes } from './lex.ts';
import type { Corefile, Directive, Property, ServerBlock, Token } from './tree.ts';

/**
 * The canonical text of a Corefile: one block after the other with an empty line between, four blanks for each level, imports
 * and environment references replaced by what they stood for. Reading it again gives the same tree but for the places.
 *
 * Comments are gone. Words keep the quotes they had and get them where they need them.
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
    // The zones of one CIDR share its place: they were one word.
    .filter(({ place }, at) => at === 0 || keys[at - 1]!.place !== place)
    // The parser takes one comma away; such a key had one, and was not the last.
    .map(({ text }) => printWord(/,$|^[{}]$/.test(text) ? `${text},` : text, false));
  // The parser passes over an empty word. Behind it neither an import nor a byte order mark is one.
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
  // At the beginning of a line it would be an import; it was read behind a brace.
  if (name.text === 'import' && lines.length > 0) lines.push(`${lines.pop()} ${line}`);
  else lines.push(indent + line);
  if (block === null) return;
  for (const property of block) addLine(lines, property.name, property, depth + 1);
  lines.push(`${indent}}`);
}

/** A word as it must be written. Text that quotes cannot hold (a lone backslash before a quote) is written as near as can be. */
function printWord(text: string, quoted: boolean): string {
  if (!quoted && !needsQuotes(text)) return text;
  return `"${text.replaceAll('"', '\\"')}"`;
}
