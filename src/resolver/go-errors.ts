/** What Go's net package says when a lookup fails. */
import { failed, type Found } from './client.ts';
import type { GoTraits } from './go-releases.ts';
import type { Fault } from './network.ts';

/** An error as net.DNSError shows it. */
export interface GoError {
  readonly text: string;
  readonly notFound: boolean;
  readonly timeout: boolean;
  readonly temporary: boolean;
}

/** The name, or all of what was asked for of it, is not there. */
export const noSuchHost: GoError = {
  text: 'no such host',
  notFound: true,
  timeout: false,
  temporary: false,
};

const faultTexts: Readonly<Record<Fault, string>> = {
  refused: 'connection refused',
  unreachable: 'no route to host',
  'no-route': 'network is unreachable',
  reset: 'connection reset by peer',
  closed: 'EOF',
  timeout: 'i/o timeout',
};

/** An error of a socket: `read udp 10.96.0.10:53: read: connection refused`. @param where the server's address and port */
export function socketError(what: string, where: string, fault: Fault, protocol: string): GoError {
  const call = what === 'dial' ? 'dial' : what;
  const system = what === 'dial' ? 'connect' : what;
  const timeout = fault === 'timeout';
  return {
    text: `${call} ${protocol} ${where}: ${timeout ? '' : `${system}: `}${faultTexts[fault]}`,
    notFound: false,
    timeout,
    temporary: true,
  };
}

/** A server that said nothing in time. */
export function timeoutError(where: string, protocol: string): GoError {
  return {
    text: `read ${protocol} ${where}: i/o timeout`,
    notFound: false,
    timeout: true,
    temporary: true,
  };
}

/** There are addresses, or a hosts file alone, but none of the asked family: an error of another kind. */
export function unsuitable(name: string): Found {
  return failed('AddrError', null, `address ${name}: no suitable address found`);
}

/** How a program is shown the error. */
export function failure(error: GoError): Found {
  const flags = `notfound=${error.notFound} timeout=${error.timeout} temporary=${error.temporary}`;
  return failed('DNSError', null, `${error.text} (${flags})`);
}

/** How Go shows what getaddrinfo said. */
export function fromLibc(result: Found, traits: GoTraits): Found {
  const code = result.failure?.code;
  if (code === undefined) return result;
  if (code === 'EAI_NONAME') return failure(noSuchHost);
  if (code === 'EAI_NODATA' && traits.nodataNotFound) return failure(noSuchHost);
  if (code === 'EAI_AGAIN') {
    return failure({
      text: result.failure?.text ?? '',
      notFound: false,
      timeout: false,
      temporary: true,
    });
  }
  return failure({
    // EAI_SYSTEM shows errno, which a missing nsswitch module leaves at EBUSY.
    text: code === 'EAI_SYSTEM' ? 'device or resource busy' : (result.failure?.text ?? ''),
    notFound: false,
    timeout: false,
    temporary: false,
  });
}
