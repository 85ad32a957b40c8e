/**
 * Escapes the output of all verbs. Our own colors become escape sequences; everything else that a
 * terminal would obey or hide is shown. Names and texts come from captures, servers and files of
 * others.
 */
import { visible } from '../../server/base/visible.ts';

/**
 * Marks the colours of this process. Foreign text cannot contain it, because it is drawn when the
 * first colour is used.
 */
let mark: string | null = null;

/** The mark, and the number of the colour. */
// eslint-disable-next-line no-control-regex -- the escapes are ours
const COLOUR = /\u001b\[([\da-f]{16});(\d{1,2})m/g;

/** The text in a colour (a number of ECMA-48's SGR), for `harmless`; an empty text stays empty. */
export function coloured(text: string, sgr: number): string {
  if (text === '') return '';
  mark ??= drawn();
  return `\u001b[${mark};${sgr}m${text}\u001b[${mark};0m`;
}

/** The text without our colours. */
export function uncoloured(text: string): string {
  return mark === null ? text : text.replace(COLOUR, '');
}

/** The number of visible characters, without colors. */
export function printedLength(text: string): number {
  return uncoloured(text).length;
}

/**
 * The text as it is written, to a terminal or through a pipe: with our colours, and with everything
 * else escaped that `visible` escapes.
 */
export function harmless(text: string): string {
  if (mark === null) return visible(text);
  let safe = '';
  let from = 0;
  for (const found of text.matchAll(COLOUR)) {
    if (found[1] !== mark) continue;
    safe += `${visible(text.slice(from, found.index))}\u001b[${found[2]}m`;
    from = found.index + found[0].length;
  }
  return safe + visible(text.slice(from));
}

function drawn(): string {
  const words = crypto.getRandomValues(new Uint32Array(2));
  return Array.from(words, (word) => word.toString(16).padStart(8, '0')).join('');
}
