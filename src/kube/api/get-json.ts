/** One exchange with the Kubernetes API, read whole. */
import type { ApiChange, ApiClient } from './client.ts';
import { ApiFailure } from './failure.ts';

/** One object, or a list of them, fits; more is somebody's mistake. */
const BYTES_MAX = 64 * 1024 * 1024;

/** What is asked for. */
export interface JsonRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Besides those of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What this is for: `get pods`; stands in messages. */
  readonly task: string;
  /** Longest wait for the first byte, and longest silence after it, milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** One GET whose reply is wanted whole. Rejects with an `ApiFailure`, or when aborted. */
export function getJson(client: ApiClient, request: JsonRequest): Promise<unknown> {
  return exchange(client, request);
}

/** One request that changes something; gives what the server says of it. Rejects with an `ApiFailure`, or when aborted. */
export function sendJson(
  client: ApiClient,
  request: JsonRequest & { readonly change: ApiChange },
): Promise<unknown> {
  return exchange(client, request);
}

async function exchange(
  client: ApiClient,
  request: JsonRequest & { readonly change?: ApiChange },
): Promise<unknown> {
  const { path, query = {}, headers, change, task, waitMs, signal } = request;
  const pieces: Buffer[] = [];
  let bytes = 0;
  const malformed = (what: string, cause?: unknown): ApiFailure =>
    new ApiFailure({ kind: 'malformed', text: `${client.host}: "${task}" gave ${what}`, cause });
  await client.stream({
    path,
    query,
    ...(headers !== undefined && { headers }),
    ...(change !== undefined && { change }),
    into: {
      push(chunk) {
        bytes += chunk.length;
        if (bytes > BYTES_MAX) throw malformed(`more than ${BYTES_MAX >> 20} MiB`);
        pieces.push(Buffer.from(chunk));
      },
    },
    task,
    answerMs: waitMs,
    silenceMs: () => waitMs,
    watch: false,
    signal,
  });
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch (error) {
    throw malformed('no JSON', error);
  }
}
