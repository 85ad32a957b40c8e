import { domainToASCII } from 'node:url';

/**
 * A host name in ASCII, labels beyond it in their `xn--` form (UTS 46, non-transitional); null if
 * it has none.
 */
export function asciiHost(name: string): string | null {
  return domainToASCII(name) || null;
}
