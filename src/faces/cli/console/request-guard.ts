/**
 * Decides which requests the console accepts. Other web pages must not be able to read it. Requests therefore need the
 * token, a known host name (DNS rebinding) and the same site.
 */
import type { IncomingMessage } from 'node:http';
import {
  bearerIn,
  type AccessDecision,
  type AccessGate,
  type AccessRequest,
} from '../../../server/base/http-access.ts';

/** The cookie name includes the port because browsers share cookies between the ports of a host. */
export function cookieName(port: number): string {
  return `ndots-console-${port}`;
}

/** Why a request is rejected; null: it is accepted. */
export interface Refusal {
  readonly status: 401 | 403 | 421 | 503;
  readonly text: string;
}

/** The path in decisions about readers, instead of the paths of the page's many requests. */
const PATH = '/console';

export interface GuardParts {
  readonly gate: AccessGate;
  /** The listening address. */
  readonly host: string;
  readonly port: number;
  /** Additional host names of the page. */
  readonly hosts: readonly string[];
}

/** Rejects requests that do not come from the page, opened with the token. */
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

  /** The host and the site must be right, whoever sends the request. */
  foreign(request: IncomingMessage): Refusal | null {
    const { host = '', 'sec-fetch-site': site, origin } = request.headers;
    if (!this.#hosts.has(hostName(host)))
      return {
        status: 421,
        text: `This page is not available as ${hostName(host)}. Start ndots console with --host ${hostName(host)} to allow that name.`,
      };
    // A link to the page from elsewhere is a harmless navigation. Other cross-site requests are not harmless.
    const isNavigation = request.headers['sec-fetch-mode'] === 'navigate';
    if (!isNavigation && (site === 'cross-site' || site === 'same-site'))
      return { status: 403, text: 'Requests from other sites are refused.' };
    if (origin !== undefined && !this.#isOwn(origin))
      return { status: 403, text: 'Requests from other sites are refused.' };
    return null;
  }

  /** @param given token in the request's address, if there is one */
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

/** The host name from a Host header, without the port, in lower case. */
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

/** A cookie's value is encoded, because tokens may contain any character. */
function decoded(value: string): string | null {
  try {
    return decodeURIComponent(value);
  } catch {
    return null;
  }
}
