/** Converts all text to lower case, because compression may change the case of names. */
export function lower<T>(value: T): T {
  const fold = (_: string, part: unknown): unknown =>
    typeof part === 'string' ? part.toLowerCase() : part;
  return JSON.parse(JSON.stringify(value), fold) as T;
}
