/** Yields the values in order, without those whose key has occurred before. */
export function* distinct<T>(all: Iterable<T>, keyOf: (one: T) => string): Generator<T> {
  const seen = new Set<string>();
  for (const one of all) {
    const key = keyOf(one);
    if (seen.has(key)) continue;
    seen.add(key);
    yield one;
  }
}
