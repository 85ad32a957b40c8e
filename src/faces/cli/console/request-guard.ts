/**
 * Decides which requests the console answers. Other web pages must not read it: not by a name that
 * points to this address (DNS rebinding), not by a request across sites, and not without the token.
 */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The name of the cookie, of the port: browsers share cookies between the ports of a host. */
export function cookieName(port: number): string {
  return `ndots-console-${port}`;
}

/** Why a request is refused; null: it is answered. */
export interface Refusal {
  readonly status: 401 | 403 | 421;
  readonly text: string;
}

/** The facts that decide about requests. */
export interface GuardParts {
  readonly token: string;
  /** The address of the listener. */
  readonly host: string;
  readonly port: number;
  /** More host names that the page may be called by. */
  readonly hosts: readonly string[];
}

/** Refuses what does not come from the page of a person who has the token. */
export class RequestGuard {
  readonly #token: Buffer;
  readonly #cookie: string;
  readonly #hosts: ReadonlySet<string>;

  constructor({ token, host, port, hosts }: GuardParts) {
    this.#token = Buffer.from(token);
    this.#cookie = cookieName(port);
    const own = host.includes(':') ? `[${host}]` : host;
    this.#hosts = new Set(['localhost', '127.0.0.1', '[::1]', own, ...hosts].map(lowerCase));
  }

  /** @param given the token in the address of the request, if there is one */
  refuse(request: IncomingMessage, given: string | null): Refusal | null {
    const { host = '', 'sec-fetch-site': site, origin } = request.headers;
    if (!this.#hosts.has(hostName(host)))
      return {
        status: 421,
        text: `This page is not called ${hostName(host)}. Start ndots console with --host ${hostName(host)} to allow that name.`,
      };
    // A link from elsewhere to the page itself is a navigation, and harmless; all else is not.
    const isNavigation = request.headers['sec-fetch-mode'] === 'navigate';
    if (!isNavigation && (site === 'cross-site' || site === 'same-site'))
      return { status: 403, text: 'Requests from other sites are refused.' };
    if (origin !== undefined && !this.#isOwn(origin))
      return { status: 403, text: 'Requests from other sites are refused.' };
    if (this.isToken(given) || this.isToken(cookieOf(request, this.#cookie))) return null;
    return {
      status: 401,
      text: 'The token is missing or wrong. Open the address that ndots console printed.',
    };
  }

  /** True for the token; the time that it takes says nothing about how much of it is right. */
  isToken(given: string | null): boolean {
    if (given === null) return false;
    const bytes = Buffer.from(given);
    return bytes.length === this.#token.length && timingSafeEqual(bytes, this.#token);
  }

  #isOwn(origin: string): boolean {
    return URL.canParse(origin) && this.#hosts.has(hostName(new URL(origin).host));
  }
}

/** The name in a Host header, without the port, in lower case. */
function hostName(host: string): string {
  return lowerCase(host.replace(/:\d{1,5}$/, ''));
}

function lowerCase(text: string): string {
  return text.toLowerCase();
}

function cookieOf({ headers: { cookie = '' } }: IncomingMessage, name: string): string | null {
  for (const part of cookie.split(';')) {
    const [key = '', value = ''] = part.trim().split('=', 2);
    if (key === name) return value;
  }
  return null;
}
