/** Kuberhealthy's HTTP server: checker reports, the status page, JSON, metrics and probes. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { addressOf, HttpAdmission } from '../../server/base/http-admission.ts';
import { answerText } from '../../server/base/http-answer.ts';
import { endHttp, listenHttp } from '../../server/base/http-listening.ts';
import { boundConnections } from '../../server/base/idle-connections.ts';
import { IncomingBodies } from '../../server/base/incoming-bodies.ts';
import { bugText, type Log } from '../../server/base/log.ts';
import type { Clock } from '../../server/base/clock.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { printExposition } from '../../server/metrics/exposition.ts';
import { groupSamples, type MetricSample } from '../../server/metrics/sample.ts';
import type { CheckRunner, RunRequest } from './check-runner.ts';
import type { EventList } from './event-list.ts';
import { PageSender } from '../../server/base/page-sender.ts';
import type { ReportIntake } from './report-intake.ts';
import {
  statusOfVersion2,
  statusOfVersion3,
  statusSamples,
  type StatusFacts,
} from './status-documents.ts';
import { PAGE_POLICY, statusPage } from './status-page.ts';

export interface KuberhealthyServerParts {
  readonly intake: Pick<ReportIntake, 'take'>;
  readonly facts: () => StatusFacts;
  readonly isReady: () => boolean;
  /** Runs a check immediately. */
  readonly ask: CheckRunner['ask'];
  readonly events: Pick<EventList, 'of'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Time limit for a client to send a whole request, in milliseconds; 10 s by default. */
  readonly requestMs?: number;
  /** Concurrent connections; default 1024. */
  readonly connectionsMax?: number;
  /** Additional metrics of this process. */
  readonly more: () => readonly MetricSample[];
  /** Results for this process's own check file, or null if there is none. */
  readonly own: () => object | null;
}

/** Report paths of versions 3 and 2. */
const REPORT_PATHS: ReadonlySet<string> = new Set(['/check', '/externalCheckStatus']);
/** Bytes. Reports are a few lines of text. */
const BODY_MAX = 256 * 1024;
/** Checkers with the same interval report simultaneously. */
const CONNECTIONS_MAX = 1024;
const REQUEST_MS = 10_000;
/** Minimum interval between identical log lines about a check, in milliseconds, and how many lines are remembered. */
const TELL_MS = 60_000;
const TOLD_MAX = 1024;
/** Grace period for open requests at shutdown, milliseconds. */
const GRACE_MS = 2000;
/**
 * Total size in bytes of reports waiting for the API server. The same limit applies separately to incomplete reports.
 */
const HELD_MAX = 8 * 1024 * 1024;

export class KuberhealthyServer {
  readonly #parts: KuberhealthyServerParts;
  readonly #server: Server;
  readonly #bodies = new IncomingBodies({ each: BODY_MAX, all: HELD_MAX });
  readonly #pages: PageSender;
  readonly #admission = new HttpAdmission();
  readonly #stopping = new AbortController();
  readonly #reports = new Map<string, number>();
  /** Time of each check's last log line. */
  readonly #told = new Map<string, number>();
  /** Total bytes of reports in progress. */
  #held = 0;

  constructor(parts: KuberhealthyServerParts) {
    this.#parts = parts;
    const { requestMs = REQUEST_MS } = parts;
    this.#server = createServer({
      requestTimeout: requestMs,
      headersTimeout: requestMs / 2,
      keepAliveTimeout: requestMs / 2,
      // How often Node enforces the limits above.
      connectionsCheckingInterval: requestMs / 10,
    });
    boundConnections(this.#server, parts.connectionsMax ?? CONNECTIONS_MAX);
    this.#pages = new PageSender(parts.clock);
    this.#server.on('request', (request, response) => this.#admit(request, response));
  }

  /**
   * Starts listening.
   * @returns the port
   * @throws the system's error if it cannot listen
   */
  listen(host: string, port: number): Promise<number> {
    return listenHttp(this.#server, host, port);
  }

  /** Stops accepting requests and allows two seconds to answer the open ones. */
  close(): Promise<void> {
    return endHttp(this.#server, GRACE_MS, () => this.#stopping.abort());
  }

  /** Reports have separate limits because NAT may make all checkers share an address. */
  #admit(request: IncomingMessage, response: ServerResponse): void {
    const url = URL.parse(request.url ?? '/', 'http://here');
    const path = url?.pathname ?? '/';
    const answer = (): void => void this.#take(url, path, request, response);
    if (REPORT_PATHS.has(path)) return answer();
    const probe = path === '/healthz' || path === '/readyz';
    this.#admission.take({ request, response, probe, answer });
  }

  async #take(
    url: URL | null,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    response.setHeader('x-content-type-options', 'nosniff');
    try {
      if (REPORT_PATHS.has(path))
        await this.#report(path === '/check' ? 3 : 2, url?.searchParams, request, response);
      else if (path === '/api/run') this.#ask(url?.searchParams, request, response);
      else if (path === '/api/events') await this.#events(url?.searchParams, request, response);
      else this.#page(path, url?.searchParams.get('namespace') ?? '', request, response);
    } catch (error) {
      this.#parts.log.error(bugText(error));
      if (!response.headersSent) answerText(response, 500, 'a bug');
    }
  }

  async #report(
    version: 2 | 3,
    query: URLSearchParams | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { intake, log } = this.#parts;
    const run = request.headers['kh-run-uuid'];
    if (this.#held > HELD_MAX) {
      this.#count(version, 503);
      return answerText(response, 503, 'too many reports at once');
    }
    const come = await this.#bodies.read(request);
    // The client closed the connection while sending, so it cannot receive a reply.
    if (come === 'gone') return;
    if (come === 'busy') {
      this.#count(version, 503);
      response.setHeader('connection', 'close');
      return answerText(response, 503, 'too many reports are in progress');
    }
    const body = come === 'too-large' ? null : come.bytes.toString('utf8');
    const bytes = body?.length ?? 0;
    this.#held += bytes;
    try {
      const answer = await intake.take(
        {
          version,
          method: request.method ?? '',
          contentType: request.headers['content-type'] ?? '',
          run: typeof run === 'string' ? run : '',
          from: addressOf(request.socket),
          token: query?.get('token') ?? '',
          body,
        },
        this.#stopping.signal,
      );
      this.#count(version, answer.status);
      // Leaves the rest of a rejected body unread.
      if (answer.status !== 200) response.setHeader('connection', 'close');
      if (answer.check !== '' && answer.status !== 200 && this.#mayTell(answer))
        log.warning(`${answer.check}: a report was rejected (${answer.status}): ${answer.text}`);
      answerText(response, answer.status, answer.text);
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      this.#count(version, 503);
      if (this.#mayTell({ check: '', status: 503 }))
        log.warning(`a report could not be stored: ${error.message}`);
      answerText(response, 503, 'the API server does not accept the state now; try again');
    } finally {
      this.#held -= bytes;
    }
  }

  /** Logs at most one line per check and minute. */
  #mayTell({ check, status }: { readonly check: string; readonly status: number }): boolean {
    const key = `${check} ${status}`;
    const now = this.#parts.clock.now();
    if (now - (this.#told.get(key) ?? -Infinity) < TELL_MS) return false;
    if (this.#told.size >= TOLD_MAX) this.#told.clear();
    this.#told.set(key, now);
    return true;
  }

  #ask(
    query: URLSearchParams | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    if (request.method !== 'POST') return answerText(response, 405, 'request runs with POST');
    const site = request.headers['sec-fetch-site'] ?? 'none';
    // Prevents other sites from starting checks through a visitor's browser.
    if (site !== 'none' && site !== 'same-origin')
      return answerText(response, 403, 'requests from other sites cannot start runs');
    const named = namedIn(query);
    if (named === null) return answerText(response, 400, PARAMETERS);
    const [status, text] = ASKED[this.#parts.ask(named.namespace, named.name)];
    if (status === 429) response.setHeader('retry-after', '10');
    answerText(response, status, text);
  }

  async #events(
    query: URLSearchParams | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (request.method !== 'GET') return answerText(response, 405, 'read events with GET');
    const named = namedIn(query);
    if (named === null) return answerText(response, 400, PARAMETERS);
    const { events } = this.#parts;
    try {
      answerJson(response, await events.of(named.namespace, named.name, this.#stopping.signal));
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      if (this.#mayTell({ check: 'events', status: 503 }))
        this.#parts.log.warning(`events could not be listed: ${error.message}; ${error.advice}`);
      answerText(response, 503, 'the API server does not list events now; try again');
    }
  }

  #count(version: 2 | 3, status: number): void {
    const key = `${version} ${status}`;
    this.#reports.set(key, (this.#reports.get(key) ?? 0) + 1);
  }

  #page(path: string, namespace: string, request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return answerText(response, 405, 'reports go to /check, or /externalCheckStatus');
    // A checker that reports to this path would never learn that its report was lost.
    if (Number(request.headers['content-length'] ?? 0) > 0)
      return answerText(response, 400, 'reports go to /check, or /externalCheckStatus');
    const { isReady, more, own } = this.#parts;
    const page = (form: string, type: string, make: () => string): void =>
      this.#pages.send(request, response, `${path} ${form} ${namespace}`, type, make);
    switch (path) {
      case '/':
        if (!(request.headers.accept ?? '').includes('text/html'))
          return page('json', JSON_TYPE, () => printed(statusOfVersion2(this.#facts(namespace))));
        response.setHeader('content-security-policy', PAGE_POLICY);
        response.setHeader('refresh', '30');
        return page('html', 'text/html; charset=utf-8', () => statusPage(this.#facts(namespace)));
      case '/json':
        return page('json', JSON_TYPE, () => printed(statusOfVersion3(this.#facts(namespace))));
      case '/metrics':
        return page('text', 'text/plain; version=0.0.4; charset=utf-8', () => {
          const samples = [...statusSamples(this.#facts('')), ...this.#samples(), ...more()];
          return printExposition(groupSamples(samples).values(), 'text');
        });
      case '/checks': {
        const document = own();
        return document === null
          ? answerText(response, 404, 'no check file is run here (-f)')
          : answerJson(response, document);
      }
      case '/healthz':
        return answerText(response, 200, 'OK');
      case '/readyz':
        return isReady()
          ? answerText(response, 200, 'OK')
          : answerText(response, 503, 'the checks are not known yet');
      default:
        return answerText(
          response,
          404,
          path.startsWith('/api/logs')
            ? 'read logs with kubectl logs, because readers of this page may not have access to them'
            : '/, /json, /metrics, /checks, /healthz, /readyz, /api/events, /api/run',
        );
    }
  }

  /** @param namespace comma-separated names, or `''` for all */
  #facts(namespace: string): StatusFacts {
    const facts = this.#parts.facts();
    const wanted = new Set(namespace.split(',').filter((each) => each !== ''));
    if (wanted.size === 0) return facts;
    return { ...facts, checks: facts.checks.filter((check) => wanted.has(check.namespace)) };
  }

  #samples(): readonly MetricSample[] {
    return Array.from(this.#reports, ([key, value]) => {
      const [version = '', status = ''] = key.split(' ');
      return {
        name: 'ndots_check_reports_total',
        help: 'Reports from checkers, by reply status.',
        kind: 'counter',
        labels: { version, status },
        value,
      };
    });
  }
}

const PARAMETERS = 'for example: ?namespace=kuberhealthy&healthcheck=dns';

const ASKED: Readonly<Record<RunRequest, readonly [number, string]>> = {
  begins: [202, 'the run begins'],
  follows: [503, 'another replica runs the checks; try again'],
  unknown: [404, 'there is no such check'],
  runs: [409, 'the check is running'],
  'too-soon': [429, 'the last run has only just begun'],
};

function namedIn(
  query: URLSearchParams | undefined,
): { readonly namespace: string; readonly name: string } | null {
  const namespace = query?.get('namespace')?.trim() ?? '';
  const name = query?.get('healthcheck')?.trim() ?? '';
  return namespace === '' || name === '' ? null : { namespace, name };
}

function answerJson(response: ServerResponse, document: object): void {
  answerText(response, 200, printed(document), JSON_TYPE);
}

const JSON_TYPE = 'application/json; charset=utf-8';

function printed(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}
