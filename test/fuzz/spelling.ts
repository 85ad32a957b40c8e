/** Lower-cases all texts, because compression may change the spelling of names. */
export function lower<T>(value: T): T {
  const fold = (_: string, part: unknown): unknown =>
    typeof part === 'string' ? part.toLowerCase() : part;
  return JSON.parse(JSON.stringify(value), fold) as T;
}
