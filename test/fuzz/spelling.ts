/** Lower-cases all texts, because the spelling of names may change where they are compressed. */
export function lower<T>(value: T): T {
  const fold = (_: string, part: unknown): unknown =>
    typeof part === 'string' ? part.toLowerCase() : part;
  return JSON.parse(JSON.stringify(value), fold) as T;
}
