/** Returns a name as in DNS messages, with its final dot. Lookups have names as programs wrote them. */
export function absoluteName(written: string): string {
  return written.endsWith('.') ? written : `${written}.`;
}

/** The name without its final dot, as programs write it. */
export function withoutFinalDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
