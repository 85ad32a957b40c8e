/**
 * The command line of `ndots node-cache`: the flags of NodeLocal DNSCache and of coredns, and a few
 * more.
 */
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
        `As in: ${name} 169.254.20.10,10.96.0.10`,
      );
    return [...new Set(list.map((word) => printAddress(parseAddress(word)!)))];
  },
};

/**
 * Go multiplies a duration by a second, so that only `60ns` ever meant a minute: here seconds are
 * meant, however they are written.
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

/** The name of an interface, as the kernel takes it. */
const interfaceName: OptionValue<string> = {
  placeholder: 'NAME',
  read(given, name) {
    if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/.test(given)) return given;
    throw usage(`${name} takes the name of an interface, of 15 characters at most, not "${given}"`);
  },
};

const { conf, dnsPort, pidfile, plugins, quiet, version } = serveTable;
const { workers, transport, httpConnections, logBuffer, logFormat, hang } = serveTable;

const table = {
  ...group('Network', {
    localIp: one(
      '-localip',
      localAddresses,
      'addresses to serve at: the link-local one, and the cluster DNS service’s',
    ),
    setupInterface: flag('-setupinterface', 'set up the interface (default true)'),
    interfaceName: one('-interfacename', interfaceName, 'its name (default nodelocaldns)'),
    setupIptables: flag('-setupiptables', 'set up the rules (default true)'),
    rules: one(
      '-rules',
      choice('HOW', ['auto', 'iptables', 'nftables']),
      'by what (default auto: iptables where it is installed, else nft)',
    ),
    failOpen: flag(
      '-failopen',
      'let go of the addresses when the cache does not answer (default true)',
    ),
    syncInterval: one(
      '-syncinterval',
      interval,
      'how often the network is looked at with -failopen=false (default 60); else each second',
    ),
    teardownPipe: one(
      '-teardown-pipe',
      file(),
      'named pipe to a shell in another container, which takes interface and rules away when this process is killed',
    ),
    skipTeardown: flag('-skipteardown', 'leave interface and rules at the end'),
    healthPort: one('-health-port', port, 'port of /health (default 8080)'),
  }),
  ...group('Corefile', {
    baseCorefile: one('-basecorefile', file(), 'template (default /etc/coredns/Corefile.base)'),
    fromCorefile: one(
      '-from-corefile',
      file(),
      'the cluster’s Corefile, of which the node’s is derived in place of the template',
    ),
    corefile: one(
      '-corefile',
      file(),
      'where the Corefile is written to (default /etc/Corefile); -conf says it, too',
    ),
    kubeDnsConfig: one(
      '-kubednscm',
      file('FOLDER'),
      'the ConfigMap kube-dns (default /etc/kube-dns, if it is there)',
    ),
    upstreamService: one(
      '-upstreamsvc',
      text('SERVICE'),
      'service whose address the cluster’s zones are asked at (default kube-dns)',
    ),
    upstreamEndpoints: one(
      '-upstream-endpoints',
      text('NAME'),
      'headless service over the pods of the cluster DNS: its endpoints are asked, and not only the service',
    ),
    reloadWithSignal: flag(
      '-reloadwithsignal',
      'taken for compatibility: changes are loaded at once in any case',
    ),
  }),
  ...group('Metrics', {
    metricsAddress: one(
      '-metrics-listen-address',
      address,
      'where errors of the set-up are counted (default 0.0.0.0:9353)',
    ),
  }),
  ...group('Upgrade', {
    takeover: one(
      '-takeover',
      file('FOLDER'),
      'where instances of a node find each other, to take over without a gap (default /run/nodelocaldns, if it is there; none: never)',
    ),
    linger: one(
      '-linger',
      duration(0, 3_600_000),
      'when another instance has taken over, stay so long before the end (default 0s)',
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

/** What the command line of `ndots node-cache` says; null: nothing was given. */
export interface NodeCacheOptions extends Omit<ServeOptions, 'example'> {
  /** Canonical, each once. */
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

/** What `ndots node-cache` takes. */
export const nodeCacheUsage: Usage = {
  synopsis: '',
  examples: [
    ['-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile', 'on a node'],
    ['-localip 169.254.20.10 -from-corefile Corefile', 'as the cluster'],
    ['-localip 169.254.20.10 -rules nftables', 'with nft'],
  ],
  style: 'go',
  options: table,
  notes: [
    'Flags are spelled as in Go: -flag value, -flag=value, --flag value; switches take a value behind = only.',
    'It takes root, or the capability NET_ADMIN (with iptables NET_RAW, too), and in a pod hostNetwork: true.',
    'SIGTERM and SIGINT end it: first the rules go, then what is in flight is answered, then the interface goes. SIGUSR1 loads the Corefile anew.',
    'Exit codes: 0 it was ended, 1 it cannot serve or may not set up the network, 3 wrong usage. More: docs/node-cache.md',
  ],
};

/** Throws a `Problem` with the code `usage`. */
export function parseNodeCacheOptions(words: readonly string[]): NodeCacheOptions {
  const { values, words: extra } = parseOptions(table, words, 'go');
  if (extra.length > 0) throw usage(`extra command line arguments: [${extra.join(' ')}]`);
  const given = [...readOptions(table, words, 'go')].filter((each) => typeof each !== 'string');
  const localIp = values.localIp ?? [];
  if (localIp.length === 0 && !values.version && !values.plugins)
    throw usage('invalid localip specified - ""', 'As in: -localip 169.254.20.10,10.96.0.10');
  return {
    ...values,
    localIp,
    setupInterface: unlessOff(given, 'setupInterface'),
    setupIptables: unlessOff(given, 'setupIptables'),
    failOpen: unlessOff(given, 'failOpen'),
  };
}

/** A switch that is on unless it was switched off. */
function unlessOff(given: readonly GivenOption[], key: keyof typeof table): boolean {
  return given.findLast((each) => each.key === key)?.on ?? true;
}
