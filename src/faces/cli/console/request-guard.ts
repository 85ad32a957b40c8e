/**
 * Decides which requests the console accepts, because other web pages must not be able to read it. Requests need the
 * token, a known host name (against DNS rebinding) and the same site.
 */
import type { IncomingMessage } from 'node:http';
import {
  bearerIn,
  type AccessDecision,
  type AccessGate,
  type AccessRequest,
} from '../../../server/base/http-access.ts';

/** The cookie name includes the port because browsers share cookies between a host's ports. */
export function cookieName(port: number): string {
  return `ndots-console-${port}`;
}

/** Why a request is rejected, or null if it is accepted. */
export interface Refusal {
  readonly status: 401 | 403 | 421 | 503;
  readonly text: string;
}

/** The path used for decisions about readers, instead of the many paths that the page requests. */
const PATH = '/console';

export interface GuardParts {
  readonly gate: AccessGate;
  readonly host: string;
  readonly port: number;
  /** Additional host names of the page. */
  readonly hosts: readonly string[];
}

/** Rejects requests unless they come from a page that was opened with the token. */
export class RequestGuard {
  readonly #gate: AccessGate;
  readonly #cookie: string;
  readonly #hosts: ReadonlySet<string>;

  constructor({ gate, host, port, hosts }: GuardParts) {
    this.#gate = gate;
    this.#cookie = cookieName(port);
    const own = host.includes(':') ? `[${host}]` : host;
    this.#hosts = new Set(['localhost', '127.0.0.1', '[::1]', own, ...hosts].map(lowerCase));
  }

  /** The host and site must match, regardless of the client. */
  foreign(request: IncomingMessage): Refusal | null {
    const { host = '', 'sec-fetch-site': site, origin } = request.headers;
    if (!this.#hosts.has(hostName(host)))
      return {
        status: 421,
        text: `This page is not available as ${hostName(host)}. Start ndots console with --host ${hostName(host)} to allow that name.`,
      };
    // Following a link to the page from elsewhere is harmless. Other cross-site requests are not.
    const isNavigation = request.headers['sec-fetch-mode'] === 'navigate';
    if (!isNavigation && (site === 'cross-site' || site === 'same-site'))
      return { status: 403, text: 'Requests from other sites are refused.' };
    if (origin !== undefined && !this.#isOwn(origin))
      return { status: 403, text: 'Requests from other sites are refused.' };
    return null;
  }

  /** @param given the token in the request's address, if any */
  asked(request: IncomingMessage, given: string | null): AccessRequest {
    return {
      token: given ?? cookieOf(request, this.#cookie) ?? bearerIn(request),
      verb: request.method === 'POST' ? 'post' : 'get',
      path: PATH,
    };
  }

  decide(asked: AccessRequest): AccessDecision | Promise<AccessDecision> {
    return this.#gate.decide(asked);
  }

  #isOwn(origin: string): boolean {
    return URL.canParse(origin) && this.#hosts.has(hostName(new URL(origin).host));
  }
}

/** The host name in a Host header, in lower case and without the port. */
function hostName(host: string): string {
  return lowerCase(host.replace(/:\d{1,5}$/, ''));
}

function lowerCase(text: string): string {
  return text.toLowerCase();
}

function cookieOf({ headers: { cookie = '' } }: IncomingMessage, name: string): string | null {
  for (const part of cookie.split(';')) {
    const [key = '', value = ''] = part.trim().split('=', 2);
    if (key === name) return decoded(value);
  }
  return null;
}

/** Cookie values are encoded, because tokens may contain any character. */
function decoded(value: string): string | null {
  try {
    return decodeURIComponent(value);
  } catch {
    return null;
  }
}
