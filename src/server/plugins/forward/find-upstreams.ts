/** Finds the upstreams for a forward line, which are given as addresses, files with nameservers, or host names. */
import { lookup, Resolver } from 'node:dns/promises';
import { errorCode, isGone } from '../../base/error-code.ts';
import { whyFailed } from '../../base/why-failed.ts';
import { FILE_MAX, readFileText } from '../../base/read-file.ts';
import { Mistakes, Problem, type Place } from '../../base/problem.ts';
import { isDomainName } from '../../corefile/zones.ts';
import { readNameservers } from '../../engine/contract/nameservers.ts';
import { printUpstream, type ForwardDestination, type ForwardUpstreamSpec } from './address.ts';
import type { HostLookup } from './host-addresses.ts';
import { upstreamsLimit } from './forward-options.ts';

export interface PlacesParts {
  /** Returns a file's text, or null if the file does not exist. Throws if it cannot be read. */
  readonly readFile: (path: string) => string | null;
  readonly resolve: (name: string, servers: readonly string[]) => Promise<readonly string[]>;
  readonly path: (file: string) => string;
}

export interface FoundUpstreams {
  readonly upstreams: readonly ForwardUpstreamSpec[];
  /** Maps each file to its text. */
  readonly files: ReadonlyMap<string, string>;
}

/**
 * Resolves all `places` that are not addresses.
 * @throws Problems for those that cannot be resolved
 */
export async function findUpstreams(
  places: readonly ForwardDestination[],
  resolvers: readonly string[],
  at: Place,
  parts: PlacesParts,
): Promise<FoundUpstreams> {
  const all: ForwardUpstreamSpec[] = [];
  const files = new Map<string, string>();
  const mistakes = new Mistakes();
  for (const place of places) {
    if (place.kind === 'address') all.push(place.upstream);
    if (place.kind !== 'place') continue;
    const { text, scheme, port, serverName } = place;
    const path = parts.path(text);
    await mistakes.of(async () => {
      const content = readPlace(path, text, at, parts);
      if (content !== null) {
        files.set(path, content);
        for (const host of readNameservers(content)) all.push({ scheme, host, port, serverName });
        return;
      }
      if (!looksLikeHost(text)) throw notFound(text, at);
      const own = scheme === 'dns' ? '' : text.replace(/\.$/, '');
      for (const host of await addresses(text, resolvers, at, parts))
        all.push({ scheme, host, port, serverName: serverName || own });
    });
  }
  mistakes.throw();
  const upstreams = once(all);
  if (upstreams.length === 0) throw noneLeft(files, at);
  if (upstreams.length > upstreamsLimit.max) {
    throw new Problem({
      code: 'forward-too-many',
      text: `plugin/forward: more than ${upstreamsLimit.max} TOs configured: ${upstreams.length}`,
      place: at,
      remedy: 'Put a load balancer in front of them, or split the zone.',
    });
  }
  return { upstreams, files };
}

/** Removes repeated addresses and ports, keeping the first one as CoreDNS does. */
function once(upstreams: readonly ForwardUpstreamSpec[]): readonly ForwardUpstreamSpec[] {
  const seen = new Map(upstreams.toReversed().map((each) => [printUpstream(each), each]));
  return upstreams.filter((each) => seen.get(printUpstream(each)) === each);
}

function readPlace(path: string, text: string, at: Place, parts: PlacesParts): string | null {
  try {
    return parts.readFile(path);
  } catch (error) {
    throw new Problem({
      code: 'file-unreadable',
      text: `plugin/forward: ${text} cannot be read: ${whyFailed(error)}`,
      place: at,
      remedy: `Make ${path} readable by the user that the server runs as.`,
      cause: error,
    });
  }
}

function looksLikeHost(text: string): boolean {
  return isDomainName(text) && /^[A-Za-z0-9_.-]+$/.test(text) && /[A-Za-z]/.test(text);
}

async function addresses(
  name: string,
  resolvers: readonly string[],
  at: Place,
  parts: PlacesParts,
): Promise<readonly string[]> {
  let found: readonly string[] = [];
  let cause: unknown;
  try {
    found = await parts.resolve(name, resolvers);
  } catch (error) {
    cause = error;
  }
  if (found.length > 0) return found;
  throw new Problem({
    code: 'upstream-unresolved',
    text: `plugin/forward: not an IP address or file: ${JSON.stringify(name)}`,
    place: at,
    hint: `It was read as a host name, but ${cause instanceof Error ? `looking it up failed: ${whyFailed(cause)}` : 'it has no address'}.`,
    remedy: 'Write an IP address, or specify servers that can resolve it: resolver IP…',
    cause,
  });
}

function notFound(text: string, at: Place): Problem {
  return new Problem({
    code: 'upstream-unresolved',
    text: `plugin/forward: not an IP address or file: ${JSON.stringify(text)}`,
    place: at,
    hint: 'There is no file with this name.',
    remedy:
      'Write IP, IP:PORT, tls://IP, https://HOST, a host name, or a file with nameserver lines.',
  });
}

function noneLeft(files: ReadonlyMap<string, string>, at: Place): Problem {
  const names = [...files.keys()].join(', ');
  return new Problem({
    code: 'upstreams-empty',
    text: `plugin/forward: no valid upstream addresses found`,
    place: at,
    hint: `${names} contains no line with \`nameserver IP\`.`,
    remedy: 'Add one, or list the upstreams in the Corefile.',
  });
}

export interface PlacesWorld {
  readonly readFile: PlacesParts['readFile'];
  /**
   * Looks up a host name as an absolute name, without search domains.
   * @param isOwn true for a name server that is this server itself and must not be queried
   */
  readonly lookUp: (
    name: string,
    servers: readonly string[],
    isOwn: (server: string) => boolean,
  ) => Promise<HostLookup>;
}

export const realPlaces: PlacesWorld = {
  readFile: readIfThere,
  async lookUp(name, servers, isOwn) {
    const ofSystem = servers.length === 0;
    if (ofSystem && isInHosts(name)) return whole(await lookup(name, { all: true }));
    const named = ofSystem ? readNameservers(readIfThere(RESOLV_CONF) ?? '') : servers;
    const others = named.filter((server) => !isOwn(server));
    if (named.length > 0 && others.length === 0) {
      const where = ofSystem ? `every name server of ${RESOLV_CONF}` : 'every resolver';
      throw new Error(`${where} is this server itself`);
    }
    if (ofSystem && others.length === named.length)
      return whole(await lookup(`${name.replace(/\.$/, '')}.`, { all: true }));
    const resolver = new Resolver({ timeout: 2000, tries: 2 });
    resolver.setServers(others);
    const ttl = { ttl: true } as const;
    const results = await Promise.allSettled([
      resolver.resolve4(name, ttl),
      resolver.resolve6(name, ttl),
    ]);
    const found = results.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    const failures = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    if (found.length === 0 && failures.length > 0) throw failures[0];
    return {
      addresses: found.map(({ address }) => address),
      ttlMs: 1000 * Math.min(...found.map((one) => one.ttl)),
      whole: failures.every((each) => noSuchRecord.has(errorCode(each))),
    };
  },
};

const RESOLV_CONF = '/etc/resolv.conf';
const noSuchRecord: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND']);

function whole(found: readonly { readonly address: string }[]): HostLookup {
  return { addresses: found.map(({ address }) => address), ttlMs: null, whole: true };
}

/** Names in this file have no trailing dot, so they are looked up exactly as written. */
function isInHosts(name: string): boolean {
  const wanted = name.toLowerCase();
  return (readIfThere('/etc/hosts') ?? '')
    .split('\n')
    .some((line) =>
      line.replace(/#.*/s, '').trim().toLowerCase().split(/\s+/).slice(1).includes(wanted),
    );
}

function readIfThere(path: string): string | null {
  try {
    return readFileText(path, FILE_MAX.small);
  } catch (error) {
    if (isGone(error) || errorCode(error) === 'EISDIR') return null;
    throw error;
  }
}
