/** A fake Kuberhealthy that accepts and refuses the same reports as versions 2 and 3, in the same way. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenReport {
  readonly version: 2 | 3;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: { readonly OK: boolean; readonly Errors: readonly string[] } | null;
}

export interface KuberhealthyStandIn {
  readonly port: number;
  readonly reports: readonly SeenReport[];
  /** The known runs. For any other run, both versions return 400. */
  readonly runs: Set<string>;
  /** Runs that have timed out. For these, version 3 returns 410. */
  readonly late: Set<string>;
  close(): Promise<void>;
}

/** @param host the listen address. Version 2 is served at `/externalCheckStatus`, version 3 at `/check` */
export async function kuberhealthy(
  runs: readonly string[],
  host = '127.0.0.1',
  port = 0,
): Promise<KuberhealthyStandIn> {
  const known = new Set(runs);
  const late = new Set<string>();
  const reports: SeenReport[] = [];
  const server = createServer((request, response) => {
    const version = request.url === '/check' ? 3 : 2;
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const body = readBody(Buffer.concat(pieces).toString('utf8'));
      const status =
        request.url === '/check' || request.url === '/externalCheckStatus'
          ? statusOf(version, request.method ?? '', request.headers, body, known, late)
          : 404;
      reports.push({ version, status, headers: request.headers, body });
      response.writeHead(status);
      const run = String(request.headers['kh-run-uuid']);
      response.end(known.has(run) ? '' : `run uuid ${run} is invalid or expired`);
    });
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    reports,
    runs: known,
    late,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function readBody(text: string): SeenReport['body'] {
  try {
    const { OK, Errors } = JSON.parse(text) as { OK?: unknown; Errors?: unknown };
    const fine =
      typeof OK === 'boolean' &&
      (Errors === null || Array.isArray(Errors)) &&
      (Errors ?? []).every((each: unknown) => typeof each === 'string');
    return fine ? { OK, Errors: (Errors ?? []) as string[] } : null;
  } catch {
    return null;
  }
}

function statusOf(
  version: 2 | 3,
  method: string,
  headers: IncomingHttpHeaders,
  body: SeenReport['body'],
  runs: ReadonlySet<string>,
  late: ReadonlySet<string>,
): number {
  const run = headers['kh-run-uuid'];
  if (version === 3) {
    if (method !== 'POST') return 405;
    if (!(headers['content-type'] ?? '').startsWith('application/json')) return 415;
    if (typeof run !== 'string' || run === '') return 400;
    if (!runs.has(run)) return 400;
    if (late.has(run)) return 410;
  } else if (typeof run !== 'string' || !runs.has(run)) return 400;
  if (body === null) return 400;
  if (body.OK) return version === 3 && body.Errors.length > 0 ? 400 : 200;
  return body.Errors.length === 0 || body.Errors.includes('') ? 400 : 200;
}
