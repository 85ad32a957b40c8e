/**
 * The releases of a client and their differences. A client's table begins with the traits of its oldest
 * release; every further row names a release and only its changes. A model reads traits and never compares
 * versions.
 */

export type ReleaseRow<Traits> = readonly [version: string, changes?: Partial<Traits>];

export interface Picked<Traits> {
  readonly version: string;
  readonly traits: Traits;
  /** One sentence if another release replaces the requested one; null: it is that one. */
  readonly note: string | null;
}

/** The releases of one client; picks the one for a requested version. */
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

  /** Throws a RangeError if the table has no such row. */
  traitsOf(version: string): Traits {
    const traits = this.#traits.get(version);
    if (traits === undefined) throw new RangeError(`no release ${version} of ${this.#name}`);
    return traits;
  }

  /**
   * The release of a version: the newest for null; for `1.34` the newest 1.34.x; for `1.24.4` the row 1.24.
   * For a release that the table lacks, the last one before it, or else the oldest.
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

/** True if the parts of `short` are the first parts of `long`: `1.34` and `1.34.8`. */
function isPart(short: string, long: string): boolean {
  return long === short || long.startsWith(`${short}.`);
}

/** Negative if the first version is older; parts are compared as numbers. */
export function compareVersions(one: string, other: string): number {
  const left = one.split('.').map((part) => Number.parseInt(part, 10) || 0);
  const right = other.split('.').map((part) => Number.parseInt(part, 10) || 0);
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
