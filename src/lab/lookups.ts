/** Lookups of clients: real programs and modelled resolvers in a pod, and the same models in virtual time. */
import { seededRandom } from '../base/random.ts';
import { parseAnswers } from '../resolver/answers-file.ts';
import { findClient } from '../resolver/clients.ts';
import { podResolvConf, type DnsConfig } from '../resolver/dns-policy.ts';
import { makeReport, type QueryDocument, type TraceDocument } from '../resolver/report.ts';
import { planLookup, type LookupPlan } from '../resolver/run.ts';
import type { PacketRow } from './capture.ts';
import type { LabCluster } from './cluster.ts';
import { usualNodeResolvConf } from './defaults.ts';

/** What a lookup came to. */
export interface Looked {
  readonly ok: boolean;
  readonly seconds: number;
  readonly addresses: readonly string[];
  /** What the program was told; null: it has addresses. */
  readonly error: string | null;
  readonly queries: readonly QueryDocument[];
  readonly packets: readonly PacketRow[];
}

/** The DNS service of clusters that nobody has described otherwise. */
const CLUSTER_DNS = '10.96.0.10';

/** The C library of this machine, by getent. */
export async function getent(lab: LabCluster, pod: string, name: string): Promise<Looked> {
  const { status, stdout, tookMs } = await lab.execLater(pod, ['getent', 'ahosts', name]);
  const addresses = [...new Set(stdout.split('\n').flatMap((line) => line.split(' ')[0] || []))];
  return {
    ok: status === 0,
    seconds: tookMs / 1000,
    addresses,
    error: status === 0 ? null : `getent ended with ${status}`,
    ...{ queries: [], packets: [] },
  };
}

/** A resolver that is modelled, over real sockets: what it sends is what the real one would. */
export async function modelled(
  lab: LabCluster,
  ndots: readonly string[],
  pod: string,
  client: string,
  name: string,
): Promise<Looked> {
  const words = [...ndots, 'trace', name, '--client', client, '-o', 'json'];
  const { stdout, stderr } = await lab.execLater(pod, words, 120_000);
  const document = JSON.parse(stdout === '' ? 'null' : stdout) as TraceDocument | null;
  if (document === null) throw new Error(`ndots trace ${name} in ${pod}: ${stderr}`);
  return lookedOf(document);
}

/** A modelled resolver in virtual time. */
export async function planned(
  client: string,
  name: string,
  rules: readonly object[],
  more: {
    readonly config?: DnsConfig;
    readonly delayMs?: number;
    readonly ipv6?: boolean;
    readonly nodeResolvConf?: string;
  } = {},
): Promise<Looked> {
  const conf = podResolvConf(
    {
      namespace: 'default',
      policy: 'ClusterFirst',
      config: more.config ?? null,
      hostNetwork: false,
    },
    {
      clusterDns: [CLUSTER_DNS],
      clusterDomain: 'cluster.local',
      nodeResolvConf: more.nodeResolvConf ?? usualNodeResolvConf,
    },
  );
  const plan: LookupPlan = {
    client: findClient(client)!,
    name,
    families: [4, 6],
    addrConfig: more.ipv6 === false,
    settings: {
      ...{ resolvConf: conf.text, nsswitch: null, hosts: null, hostAliases: null, env: {} },
      host: {
        hostname: 'client',
        addresses: more.ipv6 === false ? ['10.244.1.4'] : ['10.244.1.4', 'fd00:244::4'],
        loopback: [4, 6],
      },
    },
    ...{ repeat: 1, limitMs: 600_000 },
  };
  const script = parseAnswers({ delay: more.delayMs ?? 1, rules }, 'the script of a story');
  const run = await planLookup(plan, script, seededRandom(1));
  return lookedOf(makeReport(run, [], { startedAt: null, from: null }));
}

function lookedOf({ result, queries }: TraceDocument): Looked {
  return {
    ok: result.ok,
    seconds: result.elapsedMs / 1000,
    addresses: result.addresses,
    error: result.error,
    queries,
    packets: packetsOf(queries),
  };
}

/** Queries and replies in order, as a capture would show them. */
function packetsOf(queries: readonly QueryDocument[]): readonly PacketRow[] {
  const rows = queries.flatMap((query): PacketRow[] => {
    const { atMs, name, type, protocol, tookMs, answer, data, server } = query;
    const client =
      query.sourcePort === null ? `client.port${query.port}` : `client.${query.sourcePort}`;
    const to = `${server}.${query.serverPort}`;
    const over = protocol === 'tcp' ? ' (TCP)' : '';
    const sent = {
      atMs,
      from: client,
      to,
      text: `${type}? ${name}${over}`,
      isQuery: true,
      isOut: true,
    };
    if (tookMs === null) return [sent];
    const text = data.length === 0 ? answer : `${answer} ${data.slice(0, 3).join(' ')}`;
    return [
      sent,
      { atMs: atMs + tookMs, from: to, to: client, text, isQuery: false, isOut: false },
    ];
  });
  return rows.toSorted((a, b) => a.atMs - b.atMs);
}
