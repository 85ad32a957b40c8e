/** Resource versions in the Kubernetes API. */

/**
 * Returns true if one resource version precedes another. Only decimal numbers can be compared (KEP-5504). For any other
 * form, the result is false.
 */
export function isBehind(version: string, other: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(other)) return false;
  return BigInt(version) < BigInt(other);
}
