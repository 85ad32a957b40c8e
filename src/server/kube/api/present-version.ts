/** Determines an API server's current resource version. */
import type { ApiClient } from './client.ts';
import { ApiFailure } from './failure.ts';
import { ListReader, MalformedStream } from '../store/json-stream.ts';

/** Timeout in milliseconds. */
const ANSWER_MS = 10_000;

/**
 * Returns the current version of the server's database, taken from a list of one object. Returns null if the server
 * does not report it.
 * @throws ApiFailure if the server cannot be reached
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
