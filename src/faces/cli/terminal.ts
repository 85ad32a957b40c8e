/**
 * Escapes the output of every command, because names and texts come from untrusted captures, servers and files. Our own
 * colours become escape sequences, and anything else that a terminal would interpret or hide is made visible.
 */
import { visible } from '../../server/base/visible.ts';

/** Marks our own colours. Untrusted text cannot contain the mark, which is random and created on first use. */
let mark: string | null = null;

/** Captures the mark and the colour number. */
// eslint-disable-next-line no-control-regex -- matches our own escapes
const COLOUR = /\u001b\[([\da-f]{16});(\d{1,2})m/g;

/** Colours text (an SGR number from ECMA-48) for `harmless`. Empty text stays empty. */
export function coloured(text: string, sgr: number): string {
  if (text === '') return '';
  mark ??= drawn();
  return `\u001b[${mark};${sgr}m${text}\u001b[${mark};0m`;
}

/** Removes our colours. */
export function uncoloured(text: string): string {
  return mark === null ? text : text.replace(COLOUR, '');
}

/** The number of visible characters, without colours. */
export function printedLength(text: string): number {
  return uncoloured(text).length;
}

/** The text to write to a terminal or pipe, with our colours, and with everything else escaped as in `visible`. */
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
