/**
 * Lets the API server decide who may read something here. TokenReview identifies the sender, and SubjectAccessReview
 * says whether that user may use a verb on a path (a non-resource URL in RBAC rules). Kubernetes components that serve
 * HTTP delegate in the same way.
 */
import { builtins } from '../../base/builtins.ts';
import type { Clock } from '../../base/clock.ts';
import { FailureReport } from '../../base/failure-report.ts';
import type {
  AccessDecision,
  AccessGate,
  AccessRefusal,
  AccessRequest,
} from '../../base/http-access.ts';
import { child, list, text, texts, type JsonObject } from '../../base/json-object.ts';
import type { Log } from '../../base/log.ts';
import { Recent } from '../../base/recent.ts';
import { clipped } from '../../base/shortened.ts';
import { oneLine } from '../../base/visible.ts';
import { apiClient, userAgent, type ApiClient } from '../api/client.ts';
import type { ApiConnection } from '../api/connection.ts';
import { ApiFailure } from '../api/failure.ts';
import { createObject } from '../api/one-object.ts';

/**
 * The audience for which tokens must be issued. Tokens for other audiences are refused. The connection is not
 * encrypted, and a token for the API server itself would be worth stealing.
 */
export const ACCESS_AUDIENCE = 'ndots';

/** Milliseconds for which a decision is reused (`CacheTTL`, `AllowCacheTTL` and `DenyCacheTTL` in k8s.io/apiserver). */
const DECIDED_MS = 10_000;
/** Maximum number of cached decisions of each kind. Refusals cannot evict acceptances. */
const DECISIONS_MAX = 1024;
/** Interval between decisions about an endless reply, in milliseconds. */
const AGAIN_MS = 60_000;
/** Timeout for a review, in milliseconds (`TokenRequestTimeout` in k8s.io/apiserver). */
const WAIT_MS = 10_000;
/** Maximum number of tokens awaiting a decision, so that a flood of forged tokens stays cheap. */
const UNDECIDED_MAX = 32;
/** Limits requests to the API server for this purpose. A decision takes two requests and is then valid for 10 s. */
const LIMITS = { perSecond: 20, burst: 40, inFlight: 8 } as const;
/** Maximum number of characters quoted from others in a refusal. */
const TEXT_MAX = 300;

const WITHOUT: AccessRefusal = { status: 401, text: 'the token is missing' };
const BUSY: AccessRefusal = {
  status: 503,
  text: 'too many tokens are being reviewed: try again',
};

export interface ApiAccessParts {
  readonly connection: ApiConnection;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Leaves decisions to the API server. If it does not answer, requests are refused. */
export class ApiAccess implements AccessGate {
  readonly againMs: number = AGAIN_MS;
  readonly #client: ApiClient;
  readonly #failures: FailureReport;
  readonly #accepted: Recent<string, true>;
  readonly #refused: Recent<string, AccessRefusal>;
  readonly #undecided = new Map<string, Promise<AccessDecision>>();
  readonly #stopping = new AbortController();
  /** The caches contain no tokens, and their keys cannot be computed in advance. */
  readonly #secret = builtins.crypto().randomBytes(32);

  constructor({ connection, version, clock, log }: ApiAccessParts) {
    this.#client = apiClient({
      ...{ connection, clock, limits: LIMITS },
      userAgent: userAgent(version),
    });
    this.#failures = new FailureReport({ log, clock, work: 'review of a token' });
    this.#accepted = new Recent(clock, DECIDED_MS, DECISIONS_MAX);
    this.#refused = new Recent(clock, DECIDED_MS, DECISIONS_MAX);
  }

  decide(request: AccessRequest): AccessDecision | Promise<AccessDecision> {
    const { token, verb, path } = request;
    if (token === null || token === '') return WITHOUT;
    const { createHmac } = builtins.crypto();
    const key = createHmac('sha256', this.#secret)
      .update(JSON.stringify([verb, path, token]))
      .digest('base64');
    if (this.#accepted.get(key) === true) return null;
    const known = this.#refused.get(key) ?? this.#undecided.get(key);
    if (known !== undefined) return known;
    if (this.#undecided.size >= UNDECIDED_MAX) return BUSY;
    const decision = this.#review(key, { ...request, token });
    this.#undecided.set(key, decision);
    return decision;
  }

  close(): void {
    this.#stopping.abort();
    this.#client.close();
  }

  async #review(
    key: string,
    request: AccessRequest & { readonly token: string },
  ): Promise<AccessDecision> {
    try {
      const decision = await this.#ask(request);
      this.#failures.over();
      if (decision === null) this.#accepted.put(key, true);
      else this.#refused.put(key, decision);
      return decision;
    } catch (error) {
      // Even a bug here must not let anybody in or end the server.
      const { kind, advice } = error instanceof ApiFailure ? error : { kind: 'error', advice: '' };
      const message = String((error as Error).message);
      if (!this.#stopping.signal.aborted)
        this.#failures.failed({ kind, message, advice }, null, 'requests are refused until then');
      return {
        status: 503,
        text: 'the API server does not decide about the token at the moment; the log says why',
      };
    } finally {
      this.#undecided.delete(key);
    }
  }

  async #ask({
    token,
    verb,
    path,
  }: AccessRequest & { readonly token: string }): Promise<AccessDecision> {
    const identified = await this.#create('authentication', 'TokenReview', {
      token,
      audiences: [ACCESS_AUDIENCE],
    });
    const user = child(identified, 'user');
    const name = text(user, 'username');
    // An authenticator that ignores audiences returns none, so it has accepted a token meant for the API server.
    const isForUs = texts(identified, 'audiences').includes(ACCESS_AUDIENCE);
    if (identified['authenticated'] !== true || !isForUs || name === '') {
      const why = shown(text(identified, 'error'));
      return {
        status: 401,
        text: `the API server does not accept the token for the audience ${ACCESS_AUDIENCE}${why === '' ? '' : `: ${why}`}`,
      };
    }
    const permitted = await this.#create('authorization', 'SubjectAccessReview', {
      user: name,
      uid: text(user, 'uid'),
      groups: list(user, 'groups'),
      extra: child(user, 'extra'),
      nonResourceAttributes: { path, verb },
    });
    if (permitted['allowed'] === true && permitted['denied'] !== true) return null;
    return {
      status: 403,
      text: `the user ${shown(name)} has no permission to ${verb} ${path}; see kubectl auth can-i ${verb} ${path}`,
    };
  }

  /** Returns the status of a review. */
  async #create(
    group: 'authentication' | 'authorization',
    kind: string,
    spec: object,
  ): Promise<JsonObject> {
    const apiVersion = `${group}.k8s.io/v1`;
    const resource = `${kind.toLowerCase()}s`;
    const request = {
      ...{ path: `/apis/${apiVersion}/${resource}`, task: `create ${resource}` },
      ...{ waitMs: WAIT_MS, signal: this.#stopping.signal },
    };
    const review = { apiVersion, kind, spec };
    const ask = (): Promise<JsonObject> => createObject(this.#client, request, review);
    // A review changes nothing, so it can be repeated if the server has just closed an idle connection.
    const answer = await ask().catch((error: unknown) => {
      if (!(error instanceof ApiFailure) || error.kind !== 'network') throw error;
      return ask();
    });
    return child(answer, 'status');
  }
}

function shown(given: string): string {
  return clipped(oneLine(given), TEXT_MAX);
}
