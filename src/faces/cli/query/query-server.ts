/** Determines which server to query, and reads resolv.conf's options for `+search`. */
import { lookup } from 'node:dns/promises';
import { errorCode } from '../../../server/base/error-code.ts';
import { isIP, parseAddress } from '../../../server/base/ip.ts';
import { Problem } from '../../../server/base/problem.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { linesOf, wordsOf } from '../../../tools/resolver/resolv-conf.ts';
import { usage } from '../option-values.ts';
import type { QueryOptions } from './query-draft.ts';

export interface QueryServer {
  /** An address or, for TLS and HTTPS, a name. */
  readonly address: string;
  /** As given on the command line. */
  readonly name: string;
}

/** @throws Problem if there is no server or its name cannot be resolved */
export async function serverFor(options: QueryOptions): Promise<QueryServer> {
  const name = options.server ?? firstServer(options.resolvConf);
  const { source } = options;
  const family = options.family ?? (source === null ? null : isIP(source.host) === 4 ? 4 : 6);
  const bytes = parseAddress(name.replace(/%.*/s, ''));
  if (bytes !== null) {
    const own = bytes.length === 4 ? 4 : 6;
    if (family !== null && family !== own)
      throw usage(
        `${name} is an IPv${own} address, and ${options.family === null ? `-b ${source?.host ?? ''} is not` : `-${family} is set`}`,
      );
    return { address: name, name };
  }
  // The certificate is checked against the name.
  if (options.transport === 'tls' || options.transport === 'https') return { address: name, name };
  try {
    return { address: (await lookup(name, { family: family ?? 0 })).address, name };
  } catch (error) {
    throw new Problem({
      code: 'no-server',
      text: `the server name does not resolve: ${name}: ${whyFailed(error)}`,
      remedy: 'Give its address: ndots query @10.96.0.10 NAME',
      cause: error,
    });
  }
}

function firstServer(file: string): string {
  const server = lines(file).find(([keyword]) => keyword === 'nameserver')?.[1];
  if (server !== undefined) return server;
  throw new Problem({
    code: 'no-server',
    text: `${file} names no server`,
    remedy: 'Give one: ndots query @10.96.0.10 NAME',
  });
}

/**
 * Names to try in order until one exists, as in dig 9.18. A name with at least ndots dots is only tried as it was
 * written, whereas glibc would also try the search path. Other names are tried as written at the end.
 */
export function searchNames(options: QueryOptions): readonly string[] {
  const { name } = options;
  if (!options.search || name.endsWith('.')) return [name];
  const conf = lines(options.resolvConf);
  const list =
    options.domain === null
      ? (conf.findLast(([keyword]) => keyword === 'search' || keyword === 'domain') ?? []).slice(1)
      : [options.domain];
  const dots = name.split('.').length - 1;
  if (dots >= (options.ndots ?? ndotsOf(conf))) return [name];
  return [...list.map((domain) => (domain === '.' ? name : `${name}.${domain}`)), name];
}

function ndotsOf(conf: readonly (readonly string[])[]): number {
  const options = conf
    .filter(([keyword]) => keyword === 'options')
    .flatMap((line) => line.slice(1));
  const given = options.findLast((option) => /^ndots:\d+$/.test(option));
  return given === undefined ? 1 : Number(given.slice('ndots:'.length));
}

/**
 * The words on each line, or empty if the system has no such file.
 * @throws Problem if the user specified the file and it cannot be read
 */
function lines(file: string): readonly (readonly string[])[] {
  try {
    return linesOf(readFileText(file, FILE_MAX.small)).map(wordsOf);
  } catch (error) {
    if (file === '/etc/resolv.conf' && errorCode(error) === 'ENOENT') return [];
    throw new Problem({
      code: 'unreadable-file',
      text: `${file}: cannot read the resolv.conf: ${whyFailed(error)}`,
      cause: error,
    });
  }
}
