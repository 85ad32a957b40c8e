/** Resource versions of the Kubernetes API: their order, and the one that the server is at. */
import type { ApiClient } from './client.ts';
import { ApiFailure } from './failure.ts';
import { ListReader, MalformedStream } from './json-stream.ts';

/** Milliseconds. */
const ANSWER_MS = 10_000;

/**
 * Whether a resource version comes before another one. They are decimal numbers (KEP-5504); of any other form
 * nothing is known, and the answer is no.
 */
export function isBehind(version: string, other: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(other)) return false;
  return BigInt(version) < BigInt(other);
}

/**
 * The version that the server's database is at, from a list of one object; null if the server does not say.
 * @throws ApiFailure if it is away
 */
export async function presentVersion(
  client: ApiClient,
  { path, task, signal }: { path: string; task: string; signal: AbortSignal },
): Promise<string | null> {
  const list = new ListReader(() => {});
  try {
    await client.stream({
      path,
      query: { limit: '1' },
      into: list,
      task,
      answerMs: ANSWER_MS,
      silenceMs: () => ANSWER_MS,
      watch: false,
      signal,
    });
    return list.end().version;
  } catch (error) {
    if (error instanceof MalformedStream) return null;
    if (error instanceof ApiFailure && error.kind !== 'network') return null;
    throw error;
  }
}
