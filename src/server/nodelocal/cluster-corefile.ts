/** Derives a node's Corefile template from the cluster's Corefile, so that a name means the same in both. */
import { isIP } from '../base/ip.ts';
import { Problem } from '../base/problem.ts';
import { printCorefile } from '../corefile/print.ts';
import type { Corefile, Directive, ServerBlock } from '../corefile/corefile-tree.ts';
import { FORWARD_BOUND } from './template.ts';

/** Additional inputs for the derived template. */
export interface DeriveParts {
  /** Address of `/health`, e.g. `169.254.20.10:8080`. */
  readonly health: string;
  /** `:9253`. */
  readonly metrics: string;
  /** The port that pods use. The cluster's own blocks may use a different one, to which their service leads. */
  readonly port: number;
}

/** Directives that do not affect answers, or that every node has anyway. */
const neutral: ReadonlySet<string> = new Set([
  'errors',
  'log',
  'health',
  'ready',
  'prometheus',
  'reload',
  'loop',
  'cache',
  'debug',
  'pprof',
  'loadbalance',
  'bufsize',
  'cancel',
  'trace',
  'dnstap',
  'metadata',
  'kubernetes',
  'autopath',
  'multisocket',
  'limits',
  'timeouts',
  'shed',
  'root',
  'bind',
  'nsid',
]);

/**
 * Derives a node's Corefile template. `kubernetes` zones are forwarded to the cluster's DNS. Other zones that the
 * cluster only forwards go directly to the same upstreams. If the cluster answers a zone in any other way (`hosts`,
 * `rewrite`, `template`, `file`, `etcd` …), it goes to the cluster's DNS as well. A node must not answer anything
 * differently.
 * @throws Problem if no block serves the cluster's DNS
 */
export function deriveTemplate(cluster: Corefile, parts: DeriveParts): string {
  const pieces: string[] = [];
  const seen = new Set<string>();
  const served = clusterPort(cluster, parts.port);
  for (const block of cluster.blocks) {
    const zones = zonesOf(block, served).filter((zone) => !seen.has(zone));
    for (const zone of zones) seen.add(zone);
    if (zones.length === 0) continue;
    const own = kubernetesZones(block);
    const inner = own.filter((zone) => !zones.includes(zone) && !seen.has(zone));
    for (const zone of inner) seen.add(zone);
    const others = zones.filter((zone) => !own.includes(zone));
    const asked = [...zones.filter((zone) => own.includes(zone)), ...inner];
    if (asked.length > 0) pieces.push(printBlock(asked, clusterLines, parts));
    if (others.length > 0) {
      const lines = forwardsOnly(block) ? forwardLines(block) : clusterLines;
      pieces.push(printBlock(others, lines, parts));
    }
  }
  // One block reports the health of all.
  return pieces.join('\n').replace(/^ {4}errors$/m, `    errors\n    health ${parts.health}`);
}

/** The settings that NodeLocal DNSCache uses to query the cluster: TCP, and short TTLs for missing names. */
const clusterLines = [
  'cache {',
  '    success 9984 30',
  '    denial 9984 5',
  '}',
  'forward . __PILLAR__CLUSTER__DNS__ {',
  '    force_tcp',
  `    ${FORWARD_BOUND}`,
  '}',
];

function printBlock(
  zones: readonly string[],
  lines: readonly string[],
  { metrics, port }: DeriveParts,
): string {
  const keys = zones.map((zone) => `${zone === '.' ? '.' : zone.replace(/\.$/, '')}:${port}`);
  const all = ['errors', ...lines, 'reload', 'loop', 'bind __PILLAR__LOCAL__DNS__'];
  const body = [...all, `prometheus ${metrics}`].map((line) => `    ${line}`);
  return [`${keys.join(' ')} {`, ...body, '}', ''].join('\n');
}

/**
 * Returns the port that the cluster's DNS uses in its pods, which often differs from the one that pods query (5353 in
 * OpenShift). This is the port of the blocks with `kubernetes`, else the one that pods query, else the only one.
 * @param asked preferred if there are several candidates
 */
function clusterPort({ blocks }: Corefile, asked: number): number {
  const withZones = blocks.filter((block) => kubernetesZones(block).length > 0);
  const serving = plainPorts(withZones);
  const all = plainPorts(blocks);
  if (serving.includes(asked)) return asked;
  const [port] = serving;
  if (port !== undefined) return port;
  if (all.includes(asked)) return asked;
  if (all.length === 1) return all[0]!;
  throw new Problem({
    code: 'no-cluster-block',
    text:
      all.length === 0
        ? 'none of its server blocks serves plain DNS'
        : `none of its server blocks has kubernetes, and they use different ports (${all.join(', ')}), so it is unclear which of them serve cluster DNS`,
    hint: 'The node would have nothing to serve.',
    remedy:
      'Check that this is the cluster’s Corefile: kubectl -n kube-system get configmap coredns -o yaml',
  });
}

function plainPorts(blocks: readonly ServerBlock[]): readonly number[] {
  const keys = blocks.flatMap((block) => block.keys).filter(({ scheme }) => scheme === 'dns');
  return [...new Set(keys.map(({ port }) => port))];
}

/** Returns the zones served as plain DNS on the port that the cluster's DNS uses. */
function zonesOf({ keys }: ServerBlock, port: number): readonly string[] {
  const plain = keys.filter((key) => key.scheme === 'dns' && key.port === port);
  return [...new Set(plain.map(({ zone }) => zone))];
}

function kubernetesZones({ keys, directives }: ServerBlock): readonly string[] {
  return directives
    .filter(({ name }) => name === 'kubernetes')
    .flatMap(({ args }) =>
      args.length === 0
        ? keys.map(({ zone }) => zone)
        : args.map(({ text }) => `${text.toLowerCase().replace(/\.$/, '')}.`),
    );
}

function forwardsOnly({ directives }: ServerBlock): boolean {
  const others = directives.filter(({ name }) => !neutral.has(name));
  return others.length > 0 && others.every((directive) => isPlainForward(directive));
}

/** Returns true if a node reaches the same upstreams in the same way. */
function isPlainForward({ name, args, block }: Directive): boolean {
  if (name !== 'forward') return false;
  const files = (block ?? []).some(({ name: { text } }) => text === 'tls' || text === 'resolver');
  return !files && args.slice(1).every(({ text }) => isReachable(text));
}

/** The pod's own address differs from the node's. Of the files in the image, a node has only the usual one. */
function isReachable(to: string): boolean {
  if (to === '/etc/resolv.conf') return true;
  const [, host = ''] = /^(?:[a-z]+:\/\/)?\[?([^%\]]*)/.exec(to) ?? [];
  const bare = isIP(host) === 0 ? host.replace(/:\d{1,5}$/, '') : host;
  return isIP(bare) !== 0 && !bare.startsWith('127.') && bare !== '::1';
}

function forwardLines(block: ServerBlock): readonly string[] {
  const caches = block.directives.filter(({ name }) => name === 'cache');
  const forwards = block.directives.filter(({ name }) => name === 'forward');
  const printed = printCorefile({ blocks: [{ ...block, directives: [...caches, ...forwards] }] });
  const lines = printed.trimEnd().split('\n').slice(1, -1);
  return [
    ...(caches.length === 0 ? ['cache 30'] : []),
    ...lines.map((line) => line.replace(/^ {4}/, '')),
  ];
}
