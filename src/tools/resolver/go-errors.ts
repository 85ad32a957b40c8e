/** The errors of Go's `net` package. */
import { failed, type LookupOutcome } from './client.ts';
import type { GoTraits } from './go-releases.ts';
import type { Fault } from './network.ts';

/** As in net.DNSError. */
export interface GoError {
  readonly text: string;
  readonly notFound: boolean;
  readonly timeout: boolean;
  readonly temporary: boolean;
}

/** The name does not exist or has no records of the requested types. */
export const noSuchHost: GoError = {
  text: 'no such host',
  notFound: true,
  timeout: false,
  temporary: false,
};

/** An error other than "no such host". Go regards it as permanent unless it is `temporary`. */
export function goError(text: string, temporary = false): GoError {
  return { text, notFound: false, timeout: false, temporary };
}

const faultTexts: Readonly<Record<Fault, string>> = {
  refused: 'connection refused',
  unreachable: 'no route to host',
  'no-route': 'network is unreachable',
  reset: 'connection reset by peer',
  closed: 'EOF',
  timeout: 'i/o timeout',
};

/**
 * A socket error such as `read udp 10.96.0.10:53: read: connection refused`.
 * @param where the server's address and port
 */
export function socketError(what: string, where: string, fault: Fault, protocol: string): GoError {
  const system = what === 'dial' ? 'connect' : what;
  const timeout = fault === 'timeout';
  const text = `${what} ${protocol} ${where}: ${timeout ? '' : `${system}: `}${faultTexts[fault]}`;
  return { ...goError(text, true), timeout };
}

/** The error if no address has the requested family, or if only a hosts file was searched. */
export function unsuitable(name: string): LookupOutcome {
  return failed('AddrError', null, `address ${name}: no suitable address found`);
}

/** Returns the error as the program sees it. */
export function failure(error: GoError): LookupOutcome {
  const flags = `notfound=${error.notFound} timeout=${error.timeout} temporary=${error.temporary}`;
  return failed('DNSError', null, `${error.text} (${flags})`);
}

/** Converts a result from libc's getaddrinfo into Go's error. */
export function fromLibc(result: LookupOutcome, traits: GoTraits): LookupOutcome {
  if (result.failure === null) return result;
  const { code, text } = result.failure;
  if (code === 'EAI_NONAME') return failure(noSuchHost);
  if (code === 'EAI_NODATA' && traits.nodataNotFound) return failure(noSuchHost);
  // EAI_SYSTEM is reported as its errno, which a missing nsswitch module leaves as EBUSY.
  const busy = code === 'EAI_SYSTEM' ? 'device or resource busy' : text;
  return failure(goError(busy, code === 'EAI_AGAIN'));
}
