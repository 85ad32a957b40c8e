import { lookup, Resolver } from 'node:dns/promises';
import { errorCode, isGone } from '../../base/error-code.ts';
import { whyFailed } from '../../base/why-failed.ts';
import { FILE_MAX, readFileText } from '../../base/read-file.ts';
import { Mistakes, Problem, type Place } from '../../base/problem.ts';
import { isDomainName } from '../../corefile/zones.ts';
import { readNameservers } from '../../server/contract/nameservers.ts';
import { printUpstream, type ForwardDestination, type ForwardUpstreamSpec } from './address.ts';
import { upstreamsLimit } from './options.ts';

/** What finding upstreams needs of the world. */
export interface PlacesParts {
  /** The text of a file, or null if it does not exist. May throw if it cannot be read. */
  readonly readFile: (path: string) => string | null;
  /** The addresses of a host name. */
  readonly resolve: (name: string, servers: readonly string[]) => Promise<readonly string[]>;
  readonly path: (file: string) => string;
}

/** The upstreams of one forward line, and the files that they come from. */
export interface FoundUpstreams {
  readonly upstreams: readonly ForwardUpstreamSpec[];
  /** File → text as it was read. */
  readonly files: ReadonlyMap<string, string>;
}

/**
 * Looks up everything among `places` that is no address.
 * @throws Problems of all that lead nowhere
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

/** Each address and port once: the first counts, as in CoreDNS. */
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
      remedy: `Make ${path} readable for the user that the server runs as.`,
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
    hint: `It was taken for a host name, but ${cause instanceof Error ? `looking it up failed: ${whyFailed(cause)}` : 'it has no address'}.`,
    remedy: 'Write an IP address, or name servers that know it: resolver IP…',
    cause,
  });
}

function notFound(text: string, at: Place): Problem {
  return new Problem({
    code: 'upstream-unresolved',
    text: `plugin/forward: not an IP address or file: ${JSON.stringify(text)}`,
    place: at,
    hint: 'There is no file of this name.',
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
    hint: `No line of ${names} says \`nameserver IP\`.`,
    remedy: 'Add one, or name the upstreams in the Corefile.',
  });
}

/** The machine's files and resolvers. */
export const realPlaces: Omit<PlacesParts, 'path'> = {
  readFile(path) {
    try {
      return readFileText(path, FILE_MAX.small);
    } catch (error) {
      if (isGone(error) || errorCode(error) === 'EISDIR') return null;
      throw error;
    }
  },
  async resolve(name, servers) {
    if (servers.length === 0)
      return (await lookup(name, { all: true })).map(({ address }) => address);
    const resolver = new Resolver({ timeout: 2000, tries: 2 });
    resolver.setServers(servers);
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found = [v4, v6].flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    if (found.length === 0 && v4.status === 'rejected') throw v4.reason;
    return found;
  },
};
