/**
 * A client's releases and how they differ. The table begins with the oldest release's traits, and each further row has
 * a release and only its changes. Models read traits and never compare versions.
 */

export type ReleaseRow<Traits> = readonly [version: string, changes?: Partial<Traits>];

export interface Picked<Traits> {
  readonly version: string;
  readonly traits: Traits;
  /** A sentence that says which release replaces the requested one, or null if none does. */
  readonly note: string | null;
}

/** One client's releases. Selects the one to use for a requested version. */
export class Releases<Traits extends object> {
  readonly #name: string;
  readonly #traits = new Map<string, Traits>();

  /** @param rows oldest first; the first row's traits are `oldest` */
  constructor(name: string, oldest: Traits, rows: readonly ReleaseRow<Traits>[]) {
    this.#name = name;
    let traits = oldest;
    for (const [version, changes] of rows) {
      traits = { ...traits, ...changes };
      this.#traits.set(version, traits);
    }
  }

  /** Oldest first. */
  get versions(): readonly string[] {
    return [...this.#traits.keys()];
  }

  /** Throws RangeError if the table has no such row. */
  traitsOf(version: string): Traits {
    const traits = this.#traits.get(version);
    if (traits === undefined) throw new RangeError(`no release ${version} of ${this.#name}`);
    return traits;
  }

  /**
   * Returns the release for a version. This is the newest for null, the newest 1.34.x for `1.34`, and row 1.24 for
   * `1.24.4`. If the release is not in the table, returns the last one before it, or else the oldest.
   */
  pick(asked: string | null): Picked<Traits> {
    const { versions } = this;
    const newest = versions.at(-1) ?? '';
    const wanted = asked ?? newest;
    const same =
      versions.find((version) => version === wanted) ??
      versions.findLast((version) => isPart(wanted, version) || isPart(version, wanted));
    if (same !== undefined) return { version: same, traits: this.traitsOf(same), note: null };
    const older = versions.findLast((version) => compareVersions(version, wanted) < 0);
    const version = older ?? versions[0] ?? '';
    const note = `${this.#name} ${wanted} is unknown: this is ${version}, the nearest known release.`;
    return { version, traits: this.traitsOf(version), note };
  }
}

/** True if `short` is a prefix of `long`, part by part: `1.34` and `1.34.8`. */
function isPart(short: string, long: string): boolean {
  return long === short || long.startsWith(`${short}.`);
}

/** Negative if the first version is older. Parts are compared as numbers. */
export function compareVersions(one: string, other: string): number {
  const left = one.split('.').map((part) => Number.parseInt(part, 10) || 0);
  const right = other.split('.').map((part) => Number.parseInt(part, 10) || 0);
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
