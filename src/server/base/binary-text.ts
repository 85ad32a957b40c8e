/**
 * Detects input that is not text, such as a program, an archive or UTF-16. Text in other encodings (KOI8-R, GBK,
 * Latin-1) counts as text, and the caller decides whether to accept it.
 */

/** Number of leading characters to check. */
const LOOKED_AT = 512;
/** Proportion of control characters above which input counts as binary. A few may appear in a comment or a log line. */
const BINARY_SHARE = 0.05;
/** Control characters that do not occur in text. Escape is allowed, because it starts colour codes. */
// eslint-disable-next-line no-control-regex -- the pattern searches for control characters
const CONTROLS = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/g;
/** The replacement character, produced by decoding invalid UTF-8. */
const REPLACED = /\ufffd/g;

/** Returns true if the start of a file, decoded in any encoding, looks binary. */
export function isBinary(text: string): boolean {
  return hasMany(text, CONTROLS);
}

/** Returns true if the start of a file, decoded as UTF-8, looks like text in another encoding or like binary data. */
export function isNoUtf8(text: string): boolean {
  return isBinary(text) || hasMany(text, REPLACED);
}

/** Returns true if the line contains a control character that does not occur in text. */
export function hasControls(line: string): boolean {
  return line.search(CONTROLS) >= 0;
}

/**
 * Returns the number of the first line with such a control character, counting from 1, or 0 if there is none. A file
 * whose tail was lost in a crash contains NULs there.
 */
export function lineThatIsNoText(text: string): number {
  const at = text.search(CONTROLS);
  return at < 0 ? 0 : text.slice(0, at).split('\n').length;
}

function hasMany(text: string, odd: RegExp): boolean {
  const start = text.slice(0, LOOKED_AT);
  return (start.match(odd) ?? []).length > BINARY_SHARE * start.length;
}
