/** Servers that accept admin commands, either directly or through the cluster's API server. */
import { systemClock } from '../../../server/base/clock.ts';
import { sendHttp } from '../../../server/base/http-request.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import { FILE_MAX } from '../../../server/base/read-file.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { sendJson } from '../../../server/kube/api/get-json.ts';
import { accessOf, clusterClient } from '../cluster-options.ts';
import type { Io } from '../command.ts';
import { dnsPods, podProxyPath, type DnsPodChoice } from '../dns-pods.ts';
import { readText } from '../named-file.ts';

/** The servers to send the command to, and how to reach them. */
export interface AdminChoice {
  readonly servers: readonly { readonly host: string; readonly port: number }[];
  readonly tokenFile: string | null;
  /** The option that sets `tokenFile`, for messages. */
  readonly tokenOption: string;
  /** Null: plain HTTP. */
  readonly tls: {
    readonly ca: string | null;
    readonly cert: string | null;
    readonly key: string | null;
  } | null;
  /** A cluster's pods, or null to use `servers`. */
  readonly cluster: DnsPodChoice | null;
  readonly timeoutMs: number;
}

export interface AdminServer {
  /** `10.0.0.7:9154`, or `kube-system/coredns-7d4b9c`. */
  readonly name: string;
  /** Runs a command and returns the server's reply. Rejects with an `AdminFailure`. */
  run(command: string, words: Readonly<Record<string, string>>): Promise<unknown>;
}

/** Why a server could not run a command, and what to do about it. */
export class AdminFailure extends Error {
  readonly remedy: string;

  constructor(message: string, remedy: string) {
    super(message);
    this.name = 'AdminFailure';
    this.remedy = remedy;
  }
}

/** Maximum size of a reply in bytes. An entry takes a few hundred. */
const ANSWER_MAX = 64 * 1024 * 1024;
const PATH = '/v1/command';

/**
 * The servers on the command line, or all of the cluster's DNS pods.
 * @throws Problem
 */
export async function adminServers(
  choice: AdminChoice,
  io: Pick<Io, 'env' | 'signal'>,
): Promise<{ readonly servers: readonly AdminServer[]; close(): void }> {
  const { tokenFile, cluster } = choice;
  const token = tokenFile === null ? '-' : readText(tokenFile, 'token', FILE_MAX.small).trim();
  if (cluster !== null) return podServers(choice, cluster, token, io);
  const servers = choice.servers.map(({ host, port }) => directServer(host, port, token, choice));
  return { servers, close: () => undefined };
}

function directServer(
  host: string,
  port: number,
  token: string,
  { tls, tokenOption, timeoutMs }: AdminChoice,
): AdminServer {
  const name = printHostPort(host, port);
  const files =
    tls === null
      ? {}
      : {
          ...(tls.ca !== null && { ca: readText(tls.ca, 'certificate', FILE_MAX.small) }),
          ...(tls.cert !== null && { cert: readText(tls.cert, 'certificate', FILE_MAX.small) }),
          ...(tls.key !== null && { key: readText(tls.key, 'key', FILE_MAX.small) }),
        };
  return {
    name,
    async run(command, words) {
      const url = new URL(
        `${tls === null ? 'http' : 'https'}://${printHostPort(host, port)}${PATH}`,
      );
      url.search = new URLSearchParams({ command, ...words }).toString();
      const reply = await sendHttp({
        url,
        options: { method: 'POST', headers: { 'ndots-admin': token }, ...files },
        clock: systemClock,
        waitMs: timeoutMs,
        late: 'it does not answer',
        bytesMax: ANSWER_MAX,
        tooLong: 'its reply is too long',
      }).catch((error: unknown) => {
        throw unreachable(name, error as Error);
      });
      return answerOf(name, reply.status, reply.body.toString('utf8'), tokenOption);
    },
  };
}

async function podServers(
  { tls, tokenOption, timeoutMs: waitMs }: AdminChoice,
  cluster: DnsPodChoice,
  token: string,
  io: Pick<Io, 'env' | 'signal'>,
): Promise<{ readonly servers: readonly AdminServer[]; close(): void }> {
  const access = accessOf(cluster.access, io);
  const client = clusterClient(access);
  const bounds = { waitMs, signal: io.signal };
  try {
    const pods = await dnsPods(client, cluster, access, bounds);
    const servers = pods.map(({ name: pod }): AdminServer => ({
      name: `${cluster.namespace}/${pod}`,
      async run(command, words) {
        // A pod that sends a byte from time to time is never silent.
        const deadline = AbortSignal.timeout(waitMs);
        try {
          return await sendJson(client, {
            path: podProxyPath(cluster, pod, PATH, tls === null ? '' : 'https:'),
            query: { command, ...words },
            headers: { 'ndots-admin': token },
            change: { method: 'POST', contentType: 'application/json', body: '' },
            task: `${command} in ${pod}`,
            waitMs,
            signal: AbortSignal.any([io.signal, deadline]),
          });
        } catch (error) {
          if (deadline.aborted && !io.signal.aborted)
            throw new AdminFailure(`${pod} does not answer in time`, 'Check its log.');
          if (error instanceof ApiFailure) throw podFailure(error, pod, cluster.port, tokenOption);
          throw error;
        }
      },
    }));
    return { servers, close: () => client.close() };
  } catch (error) {
    client.close();
    throw error;
  }
}

/** The API server passes on the pod's status, but returns its own for requests that it rejects. */
function podFailure(
  { kind, message, status }: ApiFailure,
  pod: string,
  port: number,
  tokenOption: string,
): AdminFailure {
  if (kind === 'forbidden')
    return new AdminFailure(
      `it is forbidden: ${message}`,
      `Either you are not allowed to create pods/proxy there (kubectl auth can-i create pods/proxy), or the token is not the server’s (${tokenOption}).`,
    );
  if (status === 0) return new AdminFailure(message, 'Is the API server there?');
  return new AdminFailure(
    `${pod}:${port} answered through the API server with HTTP status ${status}`,
    status === 404
      ? 'The server has no cache plugin, or another program listens on this port.'
      : `admin must listen on all of the pod’s addresses: admin :${port} { token_file FILE }`,
  );
}

function answerOf(name: string, status: number, body: string, tokenOption: string): unknown {
  const [first = ''] = body.split('\n');
  switch (status) {
    case 200:
      break;
    case 401:
    case 403:
      throw new AdminFailure(
        `${name} denies access: ${first}`,
        `Provide its token: ${tokenOption} FILE`,
      );
    case 404:
      throw new AdminFailure(
        first.startsWith('no plugin')
          ? `${name} has no cache: ${first}`
          : `${name} accepts no commands`,
        'Its Corefile needs the admin and cache directives.',
      );
    case 503:
      throw new AdminFailure(`${name} is busy: ${first}`, 'Try again.');
    default:
      throw new AdminFailure(
        `${name} answered with HTTP status ${status}: ${first}`,
        'Check its log.',
      );
  }
  try {
    return JSON.parse(body);
  } catch {
    throw new AdminFailure(`${name} did not send JSON`, 'Another program listens there.');
  }
}

function unreachable(name: string, error: Error): AdminFailure {
  return new AdminFailure(
    `${name} cannot be reached: ${whyFailed(error)}`,
    'Check that its Corefile contains the admin directive, and that this is its address. If admin uses tls, add --tls or --ca FILE.',
  );
}
