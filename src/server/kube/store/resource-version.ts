/** Resource versions in the Kubernetes API. */

/**
 * Returns true if a resource version precedes another one. Only decimal numbers can be compared (KEP-5504); for any
 * other form the result is false.
 */
export function isBehind(version: string, other: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(other)) return false;
  return BigInt(version) < BigInt(other);
}
