/** The ConfigMap `kube-dns` as a directory, with stub domains and upstream servers in JSON. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isIP, parseHostPort } from '../base/ip.ts';
import { isObject, type JsonObject } from '../base/json-object.ts';
import { Problem } from '../base/problem.ts';
import { FILE_MAX, readFileText } from '../base/read-file.ts';

export interface KubeDnsConfig {
  /** Maps domains to their servers, in the order of the domain names. */
  readonly stubDomains: ReadonlyMap<string, readonly string[]>;
  readonly upstreamNameservers: readonly string[];
}

/** The content of an absent ConfigMap. */
export const emptyConfig: KubeDnsConfig = { stubDomains: new Map(), upstreamNameservers: [] };

/** kube-dns rejects more servers than this. */
const UPSTREAMS_MAX = 3;

/**
 * Reads the directory. A missing one counts as an empty ConfigMap.
 * @throws Problem
 */
export function readKubeDnsConfig(directory: string): KubeDnsConfig {
  const stubs = readKey(directory, 'stubDomains');
  const upstreams = readKey(directory, 'upstreamNameservers');
  const stubDomains = new Map<string, readonly string[]>();
  const byName = Object.entries(stubDomainsOf(stubs ?? {}, directory));
  for (const [domain, servers] of byName.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(domain) || domain.includes('..'))
      throw wrong(directory, 'stubDomains', `${JSON.stringify(domain)} is not a domain name`);
    stubDomains.set(domain, readServers(servers, directory, `stubDomains of ${domain}`));
  }
  const upstreamNameservers = readServers(upstreams ?? [], directory, 'upstreamNameservers');
  if (upstreamNameservers.length > UPSTREAMS_MAX)
    throw wrong(directory, 'upstreamNameservers', `there are more than ${UPSTREAMS_MAX}`);
  return { stubDomains, upstreamNameservers };
}

function readKey(directory: string, key: string): unknown {
  const path = join(directory, key);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    // An unreadable directory is not the same as a missing key.
    if (statSync(directory, { throwIfNoEntry: false }) !== undefined) readdirSync(directory);
    return null;
  }
  const text = readFileText(path, FILE_MAX.small);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrong(directory, key, `it is not JSON: ${(error as Error).message}`);
  }
}

function stubDomainsOf(value: unknown, directory: string): JsonObject {
  if (isObject(value)) return value;
  throw wrong(directory, 'stubDomains', 'it is not an object of domain names');
}

function readServers(value: unknown, directory: string, what: string): readonly string[] {
  if (!Array.isArray(value)) throw wrong(directory, what, 'it is not a list of servers');
  for (const server of value)
    if (!isServer(server)) {
      throw wrong(directory, what, `${JSON.stringify(server)} is not a DNS server address`);
    }
  return value as string[];
}

/**
 * Accepts `IP`, `IP:PORT` and `[v6]:PORT`, each with an optional `dns://` or `tls://`. Rejects anything that would be a
 * second word in the Corefile.
 */
function isServer(server: unknown): boolean {
  if (typeof server !== 'string') return false;
  const found = parseHostPort(server.replace(/^(?:dns|tls):\/\//, ''));
  return found !== null && isIP(found.host) !== 0 && found.port !== 0;
}

function wrong(directory: string, key: string, why: string): Problem {
  return new Problem({
    code: 'kube-dns-config',
    text: `invalid ${key} in ${directory}: ${why}`,
    hint: 'The Corefile is unchanged.',
    remedy: 'Correct the ConfigMap: kubectl -n kube-system edit configmap kube-dns',
  });
}
