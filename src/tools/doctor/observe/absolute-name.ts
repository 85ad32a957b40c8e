/** Returns a name as it is in DNS messages, with its last dot. Names of lookups are as programs wrote them. */
export function absoluteName(written: string): string {
  return written.endsWith('.') ? written : `${written}.`;
}
