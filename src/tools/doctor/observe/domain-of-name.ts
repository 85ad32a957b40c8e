/** The domain that a name is likely to be registered under. */

/** The last two labels, without a final dot. */
export function zoneOf(name: string): string {
  return name.slice(0, -1).split('.').slice(-2).join('.');
}
