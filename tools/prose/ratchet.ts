/** Compares the number of faults of each area with the recorded one, which may only fall. */

export type Counts = Readonly<Record<string, number>>;

/** Returns the areas that have more faults than are recorded; an area that is not recorded may have none. */
export const risen = (counts: Counts, recorded: Counts): readonly string[] =>
  Object.keys(counts).filter((name) => counts[name]! > (recorded[name] ?? 0));

/** Returns the counts to record: those that fell. Areas that are gone are dropped. */
export const lowered = (counts: Counts, recorded: Counts): Counts =>
  Object.fromEntries(
    Object.entries(counts).map(([name, count]) => [name, Math.min(count, recorded[name] ?? 0)]),
  );
