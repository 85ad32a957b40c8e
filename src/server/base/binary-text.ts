/**
 * Detects input that is not text: a program, an archive, text in UTF-16. Text that is not UTF-8
 * (KOI8-R, GBK, Latin-1) is text: its reader decides whether to accept it.
 */

/** The number of characters that are checked. */
const LOOKED_AT = 512;
/**
 * The share of characters that no text has, from which the input is not text. A comment or a line
 * of a log may hold some.
 */
const BINARY_SHARE = 0.05;
/** Control characters that no text has. With an escape colours begin. */
// eslint-disable-next-line no-control-regex -- the pattern searches for control characters
const CONTROLS = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/g;
/** The replacement of bytes that are not UTF-8. */
const REPLACED = /\ufffd/g;

/** True if the beginning of a file, read as text in any encoding, is not text. */
export function isBinary(text: string): boolean {
  return hasMany(text, CONTROLS);
}

/** True if a file that was read as UTF-8 begins like text in another encoding, or like none. */
export function isNoUtf8(text: string): boolean {
  return isBinary(text) || hasMany(text, REPLACED);
}

/** True if there is a control character in a line that no text has, at any place. */
export function hasControls(line: string): boolean {
  return line.search(CONTROLS) >= 0;
}

/**
 * The first line, from 1, with a control character that no text has; 0: there is none. A file whose
 * end was lost in a crash is full of zeros there.
 */
export function lineThatIsNoText(text: string): number {
  const at = text.search(CONTROLS);
  return at < 0 ? 0 : text.slice(0, at).split('\n').length;
}

function hasMany(text: string, odd: RegExp): boolean {
  const start = text.slice(0, LOOKED_AT);
  return (start.match(odd) ?? []).length > BINARY_SHARE * start.length;
}
