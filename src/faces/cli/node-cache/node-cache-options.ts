/** The command line for `ndots node-cache`, with the flags of NodeLocal DNSCache and coredns and a few more. */
import { parseAddress, printAddress, splitHostPort } from '../../../server/base/ip.ts';
import type { MetricsAddress } from '../../../server/nodelocal/setup-metrics.ts';
import { flag, group, one, type OptionValue, type Usage } from '../option.ts';
import { parseOptions, readOptions, type GivenOption } from '../option-parse.ts';
import { choice, duration, file, text, usage } from '../option-values.ts';
import { serveTable, type ServeOptions } from '../serve/serve-options.ts';

const localAddresses: OptionValue<readonly string[]> = {
  placeholder: 'IP,…',
  read(given, name) {
    const list = given.split(',').map((word) => word.trim());
    const wrong = list.find((word) => parseAddress(word) === null);
    if (wrong !== undefined)
      throw usage(
        `invalid localip specified - ${JSON.stringify(wrong)}`,
        `Example: ${name} 169.254.20.10,10.96.0.10`,
      );
    return [...new Set(list.map((word) => printAddress(parseAddress(word)!)))];
  },
};

/**
 * Go multiplies this duration by a second, so only `60ns` ever meant a minute. Here, the value is in seconds in any
 * notation.
 */
const interval: OptionValue<number> = {
  placeholder: 'SECONDS',
  read(given, name) {
    const [, number] = /^(\d{1,6})(?:s|ns)?$/.exec(given) ?? [];
    if (number !== undefined && Number(number) > 0) return Number(number) * 1000;
    throw usage(`${name} takes a number of seconds, not "${given}"`);
  },
};

/** `HOST:PORT`. */
const address: OptionValue<MetricsAddress> = {
  placeholder: 'IP:PORT',
  read(given, name) {
    const { host = '', port = null } = splitHostPort(given) ?? {};
    if (port !== null && port <= 65_535) return { host, port };
    throw usage(`${name} takes an address such as 0.0.0.0:9353, not "${given}"`);
  },
};

const port: OptionValue<number> = {
  placeholder: 'PORT',
  read(given) {
    if (/^\d{1,5}$/.test(given) && Number(given) >= 1 && Number(given) <= 65_535)
      return Number(given);
    throw usage(`invalid healthcheck port specified - ${JSON.stringify(given)}`);
  },
};

const interfaceName: OptionValue<string> = {
  placeholder: 'NAME',
  read(given, name) {
    if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/.test(given)) return given;
    throw usage(`${name} takes an interface name of at most 15 characters, not "${given}"`);
  },
};

const { conf, dnsPort, pidfile, plugins, quiet, version } = serveTable;
const { workers, transport, httpConnections, logBuffer, logFormat, hang } = serveTable;

const table = {
  ...group('Network', {
    localIp: one(
      '-localip',
      localAddresses,
      'addresses to serve: a link-local one, and the cluster DNS address',
    ),
    setupInterface: flag('-setupinterface', 'create the interface (default true)'),
    interfaceName: one(
      '-interfacename',
      interfaceName,
      'name of the interface (default nodelocaldns)',
    ),
    setupIptables: flag('-setupiptables', 'create the packet filter rules (default true)'),
    rules: one(
      '-rules',
      choice('HOW', ['auto', 'iptables', 'nftables']),
      'program that writes the rules (default auto: iptables if installed, else nft)',
    ),
    failOpen: flag(
      '-failopen',
      'release the addresses when the cache does not answer (default true)',
    ),
    syncInterval: one(
      '-syncinterval',
      interval,
      'interval of network checks with -failopen=false (default 60; otherwise 1)',
    ),
    teardownPipe: one(
      '-teardown-pipe',
      file(),
      'named pipe to a shell in another container, which removes the interface and the rules if this process is killed',
    ),
    skipTeardown: flag('-skipteardown', 'keep the interface and the rules at exit'),
    healthPort: one('-health-port', port, 'port of /health (default 8080)'),
  }),
  ...group('Corefile', {
    baseCorefile: one('-basecorefile', file(), 'template (default /etc/coredns/Corefile.base)'),
    fromCorefile: one(
      '-from-corefile',
      file(),
      'derive the Corefile from the cluster’s Corefile in this file',
    ),
    corefile: one(
      '-corefile',
      file(),
      'write the Corefile here (default /etc/Corefile; same as -conf)',
    ),
    kubeDnsConfig: one(
      '-kubednscm',
      file('DIR'),
      'mounted ConfigMap kube-dns (default /etc/kube-dns, if it exists)',
    ),
    upstreamService: one(
      '-upstreamsvc',
      text('SERVICE'),
      'DNS service for cluster names (default kube-dns)',
    ),
    upstreamEndpoints: one(
      '-upstream-endpoints',
      text('NAME'),
      'headless service for the DNS pods, to query them directly',
    ),
    reloadWithSignal: flag(
      '-reloadwithsignal',
      'accepted for compatibility; changes are always loaded at once',
    ),
  }),
  ...group('Metrics', {
    metricsAddress: one(
      '-metrics-listen-address',
      address,
      'address for metrics about setup errors (default 0.0.0.0:9353)',
    ),
  }),
  ...group('Upgrade', {
    takeover: one(
      '-takeover',
      file('DIR'),
      'directory shared by the instances on a node, for a seamless takeover (default /run/nodelocaldns, if it exists; none: off)',
    ),
    linger: one(
      '-linger',
      duration(0, 3_600_000),
      'keep running this long after another instance takes over (default 0s)',
    ),
  }),
  ...group('Server', {
    conf,
    dnsPort,
    pidfile,
    plugins,
    quiet,
    version,
    workers,
    transport,
    httpConnections,
    logBuffer,
    logFormat,
    hang,
  }),
};

/** Options for `ndots node-cache`, or null if not given. */
export interface NodeCacheOptions extends Omit<ServeOptions, 'example'> {
  /** Canonical and unique. */
  readonly localIp: readonly string[];
  readonly setupInterface: boolean;
  readonly interfaceName: string | null;
  readonly setupIptables: boolean;
  readonly rules: 'auto' | 'iptables' | 'nftables' | null;
  readonly failOpen: boolean;
  /** Milliseconds. */
  readonly syncInterval: number | null;
  readonly skipTeardown: boolean;
  readonly teardownPipe: string | null;
  readonly healthPort: number | null;
  readonly baseCorefile: string | null;
  readonly fromCorefile: string | null;
  readonly corefile: string | null;
  readonly kubeDnsConfig: string | null;
  readonly upstreamService: string | null;
  readonly upstreamEndpoints: string | null;
  readonly metricsAddress: MetricsAddress | null;
  readonly takeover: string | null;
  /** Milliseconds. */
  readonly linger: number | null;
}

export const nodeCacheUsage: Usage = {
  synopsis: '',
  examples: [
    ['-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile', 'use a given Corefile'],
    ['-localip 169.254.20.10 -from-corefile Corefile', "derive it from the cluster's"],
    ['-localip 169.254.20.10 -rules nftables', 'set rules with nft'],
  ],
  style: 'go',
  options: table,
  notes: [
    'Flags use Go syntax: -flag value, -flag=value or --flag value. A switch accepts a value only after =.',
    'It needs root or the NET_ADMIN capability (with iptables, also NET_RAW), and hostNetwork: true in a pod.',
    'On SIGTERM or SIGINT, the cache removes its rules, answers in-flight queries, and removes the interface. SIGUSR1 reloads the Corefile.',
    'Exit codes: 0 ended by a signal, 1 cannot serve or set up the network, 3 usage error. More: docs/node-cache.md',
  ],
};

/** @throws Problem (`usage`) */
export function parseNodeCacheOptions(words: readonly string[]): NodeCacheOptions {
  const { values, words: extra } = parseOptions(table, words, 'go');
  if (extra.length > 0) throw usage(`extra command line arguments: [${extra.join(' ')}]`);
  const given = [...readOptions(table, words, 'go')].filter((each) => typeof each !== 'string');
  const localIp = values.localIp ?? [];
  if (localIp.length === 0 && !values.version && !values.plugins)
    throw usage('invalid localip specified - ""', 'Example: -localip 169.254.20.10,10.96.0.10');
  return {
    ...values,
    localIp,
    setupInterface: unlessOff(given, 'setupInterface'),
    setupIptables: unlessOff(given, 'setupIptables'),
    failOpen: unlessOff(given, 'failOpen'),
  };
}

/** True for a switch, unless it is set to false. */
function unlessOff(given: readonly GivenOption[], key: keyof typeof table): boolean {
  return given.findLast((each) => each.key === key)?.on ?? true;
}
