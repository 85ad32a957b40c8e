/** Returns a name as in DNS messages, with its final dot. Lookups have names as programs wrote them. */
export function absoluteName(written: string): string {
  return written.endsWith('.') ? written : `${written}.`;
}
