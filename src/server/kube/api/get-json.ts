/** Exchanges with the Kubernetes API in which replies are read as a whole. */
import { printBytes } from '../../base/limits.ts';
import type { ApiChange, ApiClient } from './client.ts';
import { ApiFailure } from './failure.ts';

/** Default limit on a reply's size, enough for one object or a list of them. */
const BYTES_MAX = 64 * 1024 * 1024;

export interface JsonRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The request's purpose, e.g. `get pods`, used in messages. */
  readonly task: string;
  /** A reply larger than this is a failure of kind `large`. If absent, the limit is 64 MiB. */
  readonly bytesMax?: number;
  /** Maximum time to wait for the first byte, and maximum pause after it, in milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Sends a GET and parses the whole reply. Rejects with an `ApiFailure`, or when aborted. */
export function getJson(client: ApiClient, request: JsonRequest): Promise<unknown> {
  return exchange(client, request);
}

/** Sends a modifying request and parses the reply. Rejects with an `ApiFailure`, or when aborted. */
export function sendJson(
  client: ApiClient,
  request: JsonRequest & { readonly change: ApiChange },
): Promise<unknown> {
  return exchange(client, request);
}

/**
 * Sends a GET whose reply is text, such as a pod's output through the API server's proxy.
 * @param bytesMax a longer reply is an `ApiFailure`
 */
export async function getText(
  client: ApiClient,
  request: JsonRequest & { readonly bytesMax: number },
  take: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let bytes = 0;
  await streamed(client, request, (chunk) => {
    bytes += chunk.length;
    if (bytes > request.bytesMax) throw large(client, request, request.bytesMax);
    take(decoder.decode(chunk, { stream: true }));
  });
}

async function exchange(
  client: ApiClient,
  request: JsonRequest & { readonly change?: ApiChange },
): Promise<unknown> {
  const bytesMax = request.bytesMax ?? BYTES_MAX;
  const pieces: Buffer[] = [];
  let bytes = 0;
  await streamed(client, request, (chunk) => {
    bytes += chunk.length;
    if (bytes > bytesMax) throw large(client, request, bytesMax);
    pieces.push(Buffer.from(chunk));
  });
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch (error) {
    throw malformed(client, request, 'no JSON', error);
  }
}

function streamed(
  client: ApiClient,
  {
    path,
    query = {},
    headers,
    change,
    task,
    waitMs,
    signal,
  }: JsonRequest & { readonly change?: ApiChange },
  push: (chunk: Uint8Array) => void,
): Promise<void> {
  return client.stream({
    path,
    query,
    ...(headers !== undefined && { headers }),
    ...(change !== undefined && { change }),
    into: { push },
    task,
    answerMs: waitMs,
    silenceMs: () => waitMs,
    watch: false,
    signal,
  });
}

function large({ host }: ApiClient, { task }: JsonRequest, bytesMax: number): ApiFailure {
  const text = `${host}: "${task}" returned more than ${printBytes(bytesMax)}`;
  return new ApiFailure({ kind: 'large', text });
}

function malformed(
  { host }: ApiClient,
  { task }: JsonRequest,
  what: string,
  cause?: unknown,
): ApiFailure {
  return new ApiFailure({ kind: 'malformed', text: `${host}: "${task}" gave ${what}`, cause });
}
