/** What was read as text and is none: a program, an archive, text in UTF-16. */

/** So many characters are looked at. */
const LOOKED_AT = 512;
/** Of these so many are neither text nor UTF-8, though a comment may hold some. */
const BINARY_SHARE = 0.05;

/** Whether a file that was read as UTF-8 begins like no text. */
export function isBinary(text: string): boolean {
  const start = text.slice(0, LOOKED_AT);
  // eslint-disable-next-line no-control-regex -- those are what is looked for
  const odd = start.match(/[\u0000-\u0008\u000e-\u001a\u001c-\u001f\ufffd]/g) ?? [];
  return odd.length > BINARY_SHARE * start.length;
}
