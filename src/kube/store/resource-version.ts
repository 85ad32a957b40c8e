/** Resource versions of the Kubernetes API. */

/**
 * Whether a resource version comes before another one. They are decimal numbers (KEP-5504); of any other form
 * nothing is known, and the answer is no.
 */
export function isBehind(version: string, other: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(other)) return false;
  return BigInt(version) < BigInt(other);
}
