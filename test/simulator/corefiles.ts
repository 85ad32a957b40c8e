/** The Corefiles of a simulation. */
import type { Random } from '../../src/server/base/random.ts';
import { UPSTREAMS } from './internet.ts';

/** Settings that all Corefiles in a run share, because the oracle must know how old an answer may be. */
export interface Settings {
  /** The time past its TTL for which an answer may still be served. */
  readonly staleSeconds: number;
  /** The TTL of cluster names. */
  readonly ttlSeconds: number;
  /** True if the last known state of the cluster is stored in a file, for restarts. */
  readonly hasSnapshot: boolean;
}

/** The addresses and files that a Corefile names. */
export interface Surroundings {
  /** The URL of the API server. */
  readonly apiServer: string;
  /** The path of the snapshot file. */
  readonly snapshot: string;
}

export function drawSettings(random: Random): Settings {
  return {
    staleSeconds: [0, 0, 60][random.integer(3)]!,
    ttlSeconds: [0, 5, 30][random.integer(3)]!,
    hasSnapshot: random.integer(2) === 0,
  };
}

/** A valid Corefile. */
export function corefileOf(
  { staleSeconds, ttlSeconds, hasSnapshot }: Settings,
  { apiServer, snapshot }: Surroundings,
  random: Random,
): string {
  const maybe = (line: string): string => (random.integer(2) === 0 ? line : '');
  const stale =
    staleSeconds > 0
      ? `serve_stale ${staleSeconds}s ${['immediate', 'verify'][random.integer(2)]}`
      : '';
  return `. {
    errors
    ${maybe('loadbalance')}
    ${maybe('minimal')}
    ${maybe('cancel 10s')}
    cache 30 {
        ${stale}
        ${maybe('prefetch 2 10s 20%')}
        ${maybe('servfail 0')}
    }
    kubernetes cluster.local in-addr.arpa {
        endpoint ${apiServer}
        ttl ${ttlSeconds}
        ${hasSnapshot ? `snapshot ${snapshot}` : ''}
        fallthrough in-addr.arpa
    }
    forward . ${UPSTREAMS.join(' ')} {
        policy ${['random', 'round_robin', 'sequential'][random.integer(3)]}
        ${maybe('max_concurrent 1000')}
        ${maybe('max_fails 0')}
        ${maybe('prefer_udp')}
    }
}
`;
}

/** Corefiles that must be refused, in which case the old one stays in use. */
export const badCorefiles: readonly string[] = [
  '. {\n  forward . 203.0.113.1\n',
  '. {\n  forward\n}\n',
  '. {\n  nosuchplugin\n}\n',
  '. {\n  cache 30 {\n    nosuchoption\n  }\n  forward . 203.0.113.1\n}\n',
  '. {\n  kubernetes cluster.local {\n    ttl -1\n  }\n}\n',
];
