/** The addresses of `grpc` upstreams. */
import { whyFailed } from '../../base/why-failed.ts';
import { isIP, printHostPort, splitHostPort } from '../../base/ip.ts';
import { Problem, type Place } from '../../base/problem.ts';
import { readNameservers } from '../../engine/contract/nameservers.ts';
import { transports } from '../../wire/transports.ts';

/** One upstream. Plain data, because the control plane sends it to the workers. */
export interface GrpcUpstreamSpec {
  /** The name used in metrics: `10.0.0.1:9005`, `unix:///run/dns.sock`. */
  readonly to: string;
  /** An IP address, or `unix:` and a path. */
  readonly host: string;
  readonly port: number;
}

/** A word after FROM, which is an upstream or a file with `nameserver` lines. */
export type GrpcDestination = GrpcUpstreamSpec | { readonly file: string };

/**
 * Parses one TO.
 * @returns null if it is malformed
 */
export function readTo(text: string): GrpcDestination | null {
  const parts = /^([a-z0-9]+):\/\/(.*)$/.exec(text);
  const [, scheme = 'dns', rest = text] = parts ?? [];
  if (scheme === 'unix')
    return rest === '' ? null : { to: `unix://${rest}`, host: `unix:${rest}`, port: 0 };
  if (scheme !== 'dns' && scheme !== 'grpc') return null;
  const usual = transports[scheme].port;
  const found = isIP(rest) === 6 ? { host: rest, port: null } : splitHostPort(rest);
  if (found !== null && isIP(found.host) !== 0) {
    const port = found.port ?? usual;
    return port >= 1 && port <= 65_535 ? upstream(found.host, port) : null;
  }
  return parts === null && rest !== '' ? { file: rest } : null;
}

function upstream(host: string, port: number): GrpcUpstreamSpec {
  return { to: printHostPort(host, port), host, port };
}

/**
 * Resolves the upstreams on a line.
 * @param read returns the text of a file
 * @throws Problem (`upstream-unresolved`, `upstreams-empty`)
 */
export function findUpstreams(
  places: readonly GrpcDestination[],
  at: Place,
  read: (file: string) => string,
): readonly GrpcUpstreamSpec[] {
  const found = places.flatMap((place) => {
    if (!('file' in place)) return [place];
    return readNameservers(textOf(read, place.file, at)).map((host) =>
      upstream(host, transports.dns.port),
    );
  });
  if (found.length > 0) return found;
  throw new Problem({
    code: 'upstreams-empty',
    text: 'plugin/grpc: no nameservers found',
    place: at,
    remedy: 'Add `nameserver IP` to the file, or list the upstreams in the Corefile.',
  });
}

function textOf(read: (file: string) => string, file: string, at: Place): string {
  try {
    return read(file);
  } catch (error) {
    throw new Problem({
      code: 'upstream-unresolved',
      text: `plugin/grpc: not an IP address or file ${JSON.stringify(file)}: ${whyFailed(error)}`,
      place: at,
      remedy: 'Write IP, IP:PORT, unix:///PATH, or a file with nameserver lines.',
      cause: error,
    });
  }
}
