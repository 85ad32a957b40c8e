/** Host names beyond ASCII, in the form that goes into DNS. */

/** A host name that no one has: the host of the URL before a name is set. */
const UNSET = 'unset.invalid';

/**
 * A host name in ASCII, labels beyond it in their `xn--` form (UTS 46, non-transitional); null if
 * it has none. URLs do the same work in every runtime, browsers included.
 */
export function asciiHost(name: string): string | null {
  const url = new URL(`ws://${UNSET}`);
  url.hostname = name;
  return url.hostname === UNSET || url.hostname === '' ? null : url.hostname;
}
