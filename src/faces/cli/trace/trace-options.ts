/** The command line of `ndots trace`. */
import type { AddressFamily } from '../../../tools/resolver/client.ts';
import { clusterKeys, clusterOptions, type ClusterOptions } from '../cluster-options.ts';
import {
  beside,
  flag,
  group,
  many,
  one,
  type OfferContext,
  type OptionValue,
  type Usage,
} from '../option.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { firstBeside, firstGiven, parseOptions } from '../option-parse.ts';
import {
  addresses,
  choice,
  duration,
  file,
  integer,
  namespaceName,
  pair,
  readServer,
  text,
  usage,
} from '../option-values.ts';

export interface TraceVerbOptions extends ClusterOptions, ColourOptions {
  readonly name: string | null;
  readonly clients: readonly string[];
  readonly server: string | null;
  readonly resolvConf: string | null;
  readonly nsswitch: string | null;
  readonly hosts: string | null;
  readonly hostAliases: string | null;
  readonly families: readonly AddressFamily[];
  readonly hostAddresses: readonly string[] | null;
  readonly hostname: string | null;
  readonly addrConfig: boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly answers: string | null;
  readonly corefile: string | null;
  readonly plan: boolean;
  /** `deploy/web`, in kubectl's syntax, or `host` for this machine. Null if not given. */
  readonly from: string | null;
  readonly manifests: string | null;
  readonly namespace: string | null;
  /** The kubelet's setting. If null, it comes from the cluster or is the most common value. */
  readonly clusterDns: readonly string[] | null;
  /** resolv.conf on the pod's node, or null if not given. */
  readonly nodeResolvConf: string | null;
  readonly clusterDomain: string;
  readonly ndots: number | null;
  readonly repeat: number;
  /** Time limit for the whole trace, or null for the default. */
  readonly timeoutMs: number | null;
  readonly output: Output;
  readonly compare: boolean;
  readonly save: string | null;
  readonly replay: string | null;
  readonly port: number;
}

const outputs = ['text', 'wide', 'json', 'html', 'dig'] as const;
export type Output = (typeof outputs)[number];

const clientValue = text('NAME[@VERSION],…', {
  list: true,
  words: async ({ word }) => {
    const { clientLines } = await import('../../../tools/resolver/clients.ts');
    if (!word.includes('@')) return [...clientLines.map(({ name }) => name), 'all'];
    return clientLines.flatMap(({ name, versions }) => versions.map((one) => `${name}@${one}`));
  },
});

const familiesValue: OptionValue<readonly AddressFamily[]> = {
  placeholder: '4,6',
  offers: { words: ['4', '6', '4,6'] },
  read(given, name) {
    const list = given.split(',').map((word) => word.trim());
    if (!list.every((word) => word === '4' || word === '6'))
      throw usage(`${name} takes 4, 6 or 4,6, not "${given}"`);
    return ([4, 6] as const).filter((family) => list.includes(family === 4 ? '4' : '6'));
  },
};

const table = {
  ...group('Client', {
    client: many(
      '-c, --client',
      clientValue,
      'resolver: glibc (default), musl, go, c-ares, node, java …, or all',
    ),
    families: one('--families', familiesValue, 'address families that the program requests (4,6)'),
    ipv4: flag('-4', 'IPv4 only'),
    ipv6: flag('-6', 'IPv6 only'),
    addrConfig: flag('--addrconfig', 'AI_ADDRCONFIG: only families configured on the host'),
    hostAddresses: one('--host-addresses', addresses, 'addresses of the host'),
    hostname: one('--hostname', text('NAME'), 'name of the host'),
    env: many(
      '--env',
      pair,
      'set LOCALDOMAIN, RES_OPTIONS, HOSTALIASES or GODEBUG (default: inherited)',
    ),
    ...beside(['--client'], {
      cgo: flag('--cgo', 'Go program built with cgo, same as --env CGO_ENABLED=1'),
    }),
    repeat: one('--repeat', integer('N', 1, 1000), 'repeat the lookup N times'),
  }),
  ...group('Settings', {
    from: one(
      '--from',
      text('POD', { words: offerPods }),
      'use the settings of pod/NAME, deploy/NAME, svc/NAME …, or host (this machine)',
    ),
    namespace: one('-n, --namespace', namespaceName, 'namespace of the pod'),
    ...clusterOptions,
    manifests: one(
      '--manifests',
      file('DIR'),
      'read pods and answers from these manifests; send nothing',
    ),
    clusterDns: one(
      '--cluster-dns',
      addresses,
      'kubelet’s clusterDNS (default: the kube-dns address)',
    ),
    clusterDomain: one('--cluster-domain', text('NAME'), 'kubelet’s clusterDomain (cluster.local)'),
    nodeResolvConf: one(
      '--node-resolv-conf',
      file(),
      'resolv.conf of the node; its search domains are appended',
    ),
    resolvConf: one('--resolv-conf', file(), 'use this resolv.conf'),
    nsswitch: one('--nsswitch', file(), 'use this nsswitch.conf'),
    hosts: one('--hosts', file(), 'use this hosts file'),
    hostAliases: one('--host-aliases', file(), 'use this HOSTALIASES file'),
    ndots: one('--ndots', integer('N', 0, 1000), 'override ndots in resolv.conf'),
  }),
  ...group('Answers', {
    port: one('--port', integer('N', 1, 65_535), 'port of all servers (53)'),
    plan: flag('--plan', 'send nothing, and treat every name as NXDOMAIN'),
    answers: one(
      '--answers',
      file(),
      'read the answers from FILE (docs/answers-file.md); send nothing',
    ),
    corefile: one('--corefile', file(), 'answer with this Corefile, within this process'),
    timeout: one(
      '--timeout',
      duration(1, 86_400_000),
      'limit for the whole trace (60s; 600s of simulated time)',
    ),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', outputs), outputs.join(', ')),
    json: flag('--json', 'same as -o json'),
    wide: flag('--wide', 'same as -o wide: add ports, IDs and EDNS, without truncation'),
    ...beside(['--client', '--replay'], {
      compare: flag('--compare', 'print one line per client, and the differences'),
    }),
    save: one('--save', file(), 'save the trace as JSON'),
    replay: one('--replay', file(), 'print a saved trace'),
    ...colourOptions,
  }),
};

/** Options allowed with `--replay`. With `-c all`, it prints only the differences between clients. */
const ofReplay = [
  'client',
  'output',
  'json',
  'wide',
  'compare',
  'save',
  'replay',
  'color',
  'noColor',
] as const;

/** Suggests kinds and, after a slash, names found in the cluster or the manifests. */
async function offerPods({ word, before, env }: OfferContext): Promise<readonly string[]> {
  const kinds = ['host', 'pod/', 'deploy/', 'sts/', 'ds/', 'job/', 'cronjob/', 'svc/'];
  if (!word.includes('/')) return kinds;
  try {
    const options = parseTraceOptions([
      ...before.filter((each) => each !== '--from'),
      '--from',
      word,
    ]);
    const { podNames } = await import('./trace-pod.ts');
    return await podNames(options, { env, signal: AbortSignal.timeout(2000) });
  } catch {
    // The cluster is missing or unreachable, so there is nothing to suggest.
    return [];
  }
}

export const traceUsage: Usage = {
  synopsis: 'NAME [A|AAAA] [@SERVER[:PORT]]',
  examples: [
    ['redis.cache', 'with the settings and servers of this machine'],
    ['api.twilio.com --from deploy/web --plan', 'as in a pod, without sending anything'],
    ['api --client all --answers net.yaml', 'compare all clients'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Exit codes: 0 the name resolves, 1 it does not (for any of the clients), 2 could not run, 3 usage error. More: docs/trace.md',
  ],
};

/** @throws Problem (`usage`) */
export function parseTraceOptions(given: readonly string[]): TraceVerbOptions {
  const { values, words } = parseOptions(table, given);
  if (values.replay !== null) {
    const other = words[0] ?? firstBeside(table, values, ofReplay);
    if (other !== null) throw usage(`--replay prints a saved trace and does not take "${other}"`);
  }
  const { name, server, port, type } = readWords(words);
  const local = values.from === null || values.from === 'host';
  // If there are only manifests, the client is a pod in their cluster.
  const ofPods =
    values.manifests === null || values.from === 'host' || values.resolvConf !== null
      ? (['namespace', 'clusterDns', 'nodeResolvConf'] as const)
      : [];
  const ofClusters = values.manifests === null ? (['clusterDomain'] as const) : [];
  const cluster = firstGiven(table, values, clusterKeys);
  if (values.manifests !== null && cluster !== null)
    throw usage(
      '--manifests cannot be combined with --cluster',
      `${cluster} applies to a cluster.`,
    );
  const lonely = firstGiven(table, values, [...ofPods, ...clusterKeys, ...ofClusters]);
  if (local && lonely !== null)
    throw usage(`${lonely} needs a pod`, 'Example: --from deploy/web --namespace shop');
  if (!local && values.resolvConf !== null)
    throw usage(
      '--from POD cannot be combined with --resolv-conf',
      'A pod has its own resolv.conf.',
    );
  const sent =
    (values.plan || (values.answers ?? values.corefile ?? values.manifests) !== null) &&
    values.port !== null;
  if (sent) throw usage('--port has no effect, because nothing is sent');
  const clients = values.client.flatMap((list) => list.split(',')).filter((word) => word !== '');
  if (values.client.length > 0 && clients.length === 0)
    throw usage('-c needs the name of a client', 'Example: -c musl, or -c all');
  const env: Record<string, string> = Object.fromEntries(values.env);
  if (values.cgo) env['CGO_ENABLED'] = '1';
  const short = values.json ? 'json' : values.wide ? 'wide' : null;
  return {
    ...values,
    name,
    server,
    clients: clients.length === 0 ? ['glibc'] : clients,
    families: values.families ?? families(values.ipv4, values.ipv6, type),
    env,
    clusterDomain: values.clusterDomain ?? 'cluster.local',
    repeat: values.repeat ?? 1,
    timeoutMs: values.timeout,
    output: short ?? values.output ?? 'text',
    port: port ?? values.port ?? 53,
  };
}

function families(ipv4: boolean, ipv6: boolean, type: string | null): readonly AddressFamily[] {
  if (ipv4 !== ipv6) return ipv4 ? [4] : [6];
  if (type === null) return [4, 6];
  return type === 'A' ? [4] : [6];
}

interface TraceWords {
  readonly name: string | null;
  readonly server: string | null;
  readonly port: number | null;
  readonly type: 'A' | 'AAAA' | null;
}

function readWords(words: readonly string[]): TraceWords {
  const names: string[] = [];
  let type: TraceWords['type'] = null;
  let server: string | null = null;
  let port: number | null = null;
  for (const word of words) {
    const upper = word.toUpperCase();
    if (word.startsWith('@')) ({ server, port } = readServer(word.slice(1)));
    else if (names.length === 1 && (upper === 'A' || upper === 'AAAA')) type = upper;
    else if (names.length === 1 && /^(MX|SRV|TXT|NS|PTR|SOA|CNAME|HTTPS|SVCB|CAA|ANY)$/.test(word))
      throw usage(
        `trace follows address lookups, not ${word}`,
        `To send one query of any type: ndots query ${names[0] ?? ''} ${word}`,
      );
    else names.push(word);
  }
  if (names.length > 1)
    throw usage(`trace needs exactly one name: "${names[0] ?? ''}" or "${names[1] ?? ''}"?`);
  return { name: names[0] ?? null, server, port, type };
}
