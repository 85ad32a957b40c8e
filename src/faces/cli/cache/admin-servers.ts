/**
 * Servers that are given commands: at their addresses, or through the API server of their cluster.
 */
import { systemClock } from '../../../server/base/clock.ts';
import { sendHttp } from '../../../server/base/http-request.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import { child, children, text } from '../../../server/base/json-object.ts';
import { Problem } from '../../../server/base/problem.ts';
import { FILE_MAX } from '../../../server/base/read-file.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { sendJson } from '../../../server/kube/api/get-json.ts';
import { listWhole } from '../../../server/kube/api/list.ts';
import { getObject } from '../../../server/kube/api/one-object.ts';
import {
  dnsServiceIn,
  selectorOf,
  usualDnsSelector,
} from '../../../server/kube/pods/dns-service.ts';
import type { CacheVerbOptions } from './cache-options.ts';
import { accessOf, clusterClient } from '../cluster-options.ts';
import type { Io } from '../command.ts';
import { readText } from '../named-file.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { clusterNotAsked } from '../../../server/kube/api/not-asked.ts';

/** A server that takes commands. */
export interface AdminServer {
  /** `10.0.0.7:9154`, or `kube-system/coredns-7d4b9c`. */
  readonly name: string;
  /** Gives what the server answers. Rejects with an `AdminFailure`. */
  run(command: string, words: Readonly<Record<string, string>>): Promise<unknown>;
}

/** A server that could not be given a command: why, and what to do. */
export class AdminFailure extends Error {
  readonly remedy: string;

  constructor(message: string, remedy: string) {
    super(message);
    this.name = 'AdminFailure';
    this.remedy = remedy;
  }
}

/** Bytes of a reply; an entry takes a few hundred. */
const ANSWER_MAX = 64 * 1024 * 1024;
const PATH = '/v1/command';

/**
 * The servers of the command line, or all pods of the cluster.
 * @throws Problem
 */
export async function adminServers(
  options: CacheVerbOptions,
  io: Io,
): Promise<{ readonly servers: readonly AdminServer[]; close(): void }> {
  const token =
    options.tokenFile === null ? '-' : readText(options.tokenFile, 'token', FILE_MAX.small).trim();
  if (options.cluster !== null) return podServers(options, options.cluster, token, io);
  const servers = options.servers.map(({ host, port }) => directServer(host, port, token, options));
  return { servers, close: () => undefined };
}

function directServer(
  host: string,
  port: number,
  token: string,
  { tls, timeoutMs }: CacheVerbOptions,
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
      return answerOf(name, reply.status, reply.body.toString('utf8'));
    },
  };
}

async function podServers(
  options: CacheVerbOptions,
  { namespace, selector: given, port, access: choice }: NonNullable<CacheVerbOptions['cluster']>,
  token: string,
  io: Io,
): Promise<{ readonly servers: readonly AdminServer[]; close(): void }> {
  const access = accessOf(choice, io);
  const client = clusterClient(access);
  let selector = given ?? usualDnsSelector;
  try {
    selector = given ?? (await dnsSelectorIn(client, namespace, options.timeoutMs, io.signal));
    const pods = await runningPods(client, namespace, selector, options.timeoutMs, io.signal);
    if (pods.length === 0)
      throw new Problem({
        code: 'no-replicas',
        text: `no pod with ${selector} runs in ${namespace} of ${access.name}`,
        remedy: `Find them with kubectl get pods -A -l '${usualDnsSelector}', then give --namespace and --selector.`,
      });
    const scheme = options.tls === null ? '' : 'https:';
    const servers = pods.map((pod): AdminServer => ({
      name: `${namespace}/${pod}`,
      async run(command, words) {
        try {
          return await sendJson(client, {
            path: `/api/v1/namespaces/${namespace}/pods/${scheme}${pod}:${port}/proxy${PATH}`,
            query: { command, ...words },
            headers: { 'ndots-admin': token },
            change: { method: 'POST', contentType: 'application/json', body: '' },
            task: `${command} in ${pod}`,
            waitMs: options.timeoutMs,
            signal: io.signal,
          });
        } catch (error) {
          if (error instanceof ApiFailure) throw podFailure(error, pod, port);
          throw error;
        }
      },
    }));
    return { servers, close: () => client.close() };
  } catch (error) {
    client.close();
    if (!(error instanceof ApiFailure)) throw error;
    throw clusterNotAsked(error, { remedy: `kubectl -n ${namespace} get pods -l '${selector}'` });
  }
}

/** The selector of the DNS service of a namespace; without one, or the right to see it, the usual. */
async function dnsSelectorIn(
  client: ApiClient,
  namespace: string,
  waitMs: number,
  signal: AbortSignal,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/services`;
  try {
    const found = await getObject(client, { path, task: 'list services', waitMs, signal });
    const service = dnsServiceIn(children(found, 'items'));
    const selector = service === null ? '' : selectorOf(service);
    return selector === '' ? usualDnsSelector : selector;
  } catch (error) {
    if (error instanceof ApiFailure && error.kind === 'forbidden') return usualDnsSelector;
    throw error;
  }
}

async function runningPods(
  client: ApiClient,
  namespace: string,
  labelSelector: string,
  waitMs: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const fieldSelector = 'status.phase=Running';
  const names: string[] = [];
  await listWhole(client, { path, labelSelector, fieldSelector, waitMs, signal }, (pod) =>
    names.push(text(child(pod, 'metadata'), 'name')),
  );
  return names;
}

/**
 * The API server passes on the status of the pod's server, and has its own for what it does not let
 * through.
 */
function podFailure(
  { kind, message, status }: ApiFailure,
  pod: string,
  port: number,
): AdminFailure {
  if (kind === 'forbidden')
    return new AdminFailure(
      `it is forbidden: ${message}`,
      'Either you may not create pods/proxy there (kubectl auth can-i create pods/proxy), or the token is not that of the server (--token-file).',
    );
  if (status === 0) return new AdminFailure(message, 'Is the API server there?');
  return new AdminFailure(
    `${pod}:${port} answered through the API server with HTTP status ${status}`,
    status === 404
      ? 'The server has no plugin cache, or another program listens on this port.'
      : `admin has to listen on all addresses of the pod: admin :${port} { token_file FILE }`,
  );
}

function answerOf(name: string, status: number, body: string): unknown {
  const [first = ''] = body.split('\n');
  switch (status) {
    case 200:
      break;
    case 401:
    case 403:
      throw new AdminFailure(
        `${name} denies access:  ${first}`,
        'Give its token: --token-file FILE',
      );
    case 404:
      throw new AdminFailure(
        first.startsWith('no plugin')
          ? `${name} has no cache: ${first}`
          : `${name} accepts no commands`,
        'Its Corefile needs the directives admin and cache.',
      );
    case 503:
      throw new AdminFailure(`${name} is busy: ${first}`, 'Try again.');
    default:
      throw new AdminFailure(
        `${name} answered with HTTP status ${status}: ${first}`,
        'Look at its log.',
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
    'Is the directive admin in its Corefile, and is this its address? With tls, add --tls or --ca FILE.',
  );
}
