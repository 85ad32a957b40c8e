/** Converts host names with non-ASCII characters to the form used in DNS. */

/** A host name that does not exist. It is a placeholder until the real name is set on the URL. */
const UNSET = 'unset.invalid';

/**
 * Returns a host name in ASCII, with other labels in `xn--` form (UTS 46, non-transitional), or null if it has no such
 * form. Uses the URL parser because it behaves the same in every runtime, browsers included.
 */
export function asciiHost(name: string): string | null {
  const url = new URL(`ws://${UNSET}`);
  url.hostname = name;
  return url.hostname === UNSET || url.hostname === '' ? null : url.hostname;
}
