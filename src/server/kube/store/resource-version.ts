/** Resource versions of the Kubernetes API. */

/**
 * True if a resource version comes before another one. Only decimal numbers can be compared
 * (KEP-5504); for any other form the result is false.
 */
export function isBehind(version: string, other: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(other)) return false;
  return BigInt(version) < BigInt(other);
}
