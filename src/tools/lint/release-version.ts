/** Version numbers of releases. */

/** A release: `1.14.7`. */
export type Version = readonly [major: number, minor: number, patch: number];

/** Parses a version; `1.11` is 1.11.0. */
export function readVersion(text: string): Version {
  const [major = 0, minor = 0, patch = 0] = text.split('.').map(Number);
  return [major, minor, patch];
}

/** True if the first release is older than the second. */
export function isBefore(version: Version, other: Version): boolean {
  const at = version.findIndex((part, index) => part !== other[index]);
  return at >= 0 && version[at]! < other[at]!;
}
