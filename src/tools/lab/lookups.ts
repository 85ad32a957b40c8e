/** Lookups in a pod, by real programs, by resolver models, or by the same models in virtual time. */
import type { ImpliedPod } from '../../server/kube/manifests/pods.ts';
import type { Script } from '../resolver/answers-file.ts';
import { findClient } from '../resolver/clients.ts';
import { makeReport, type QueryDocument, type TraceDocument } from '../resolver/trace-document.ts';
import { planOnce } from '../resolver/run-lookup.ts';
import { RECORDS_SHOWN, type PacketRow } from './capture.ts';
import type { LabCluster } from './cluster.ts';
import { podFiles } from './pod-files.ts';
import { readReport, realClient } from './real-clients.ts';
import type { Stage } from './story.ts';

export interface AskedQuestion {
  /** Absolute. */
  readonly name: string;
  readonly type: string;
  readonly protocol: string;
  /** `NXDOMAIN`, `203.0.113.80`, `DROP`. */
  readonly answer: string;
}

export interface Looked {
  /** `musl`, or `musl (its model: needs musl-gcc)`. */
  readonly who: string;
  readonly ok: boolean;
  readonly seconds: number;
  readonly addresses: readonly string[];
  /** Null if the program got addresses. */
  readonly error: string | null;
  /** In order. */
  readonly queries: readonly AskedQuestion[];
  readonly packets: readonly PacketRow[];
}

/**
 * glibc as used by programs that pass no hints (AI_ADDRCONFIG). If there is no IPv6 address, it does not query AAAA.
 */
export const GETENT = 'getent';

/** The address of the DNS service, unless a cluster specifies another. */
const CLUSTER_DNS = '10.96.0.10';

/** A pod in a virtual-time cluster. */
interface PlannedPod {
  readonly pod: ImpliedPod;
  readonly nodeResolvConf: string;
  readonly ipv6: boolean;
}

/** In milliseconds. */
const LIMIT_MS = 120_000;

/**
 * Looks up a name in a pod using the real client. If the program is not available, its model sends queries over real
 * sockets instead. Lookups in the same pod must not overlap, because each is identified by the packets on the pod's
 * link.
 */
export async function look(
  stage: Pick<Stage, 'ndots' | 'env' | 'capture'>,
  lab: LabCluster,
  pod: string,
  client: string,
  name: string,
): Promise<Looked> {
  if (client === GETENT) return getent(stage, lab, pod, name);
  const real = await realClient(client, stage.env);
  if (real.words === null) {
    const by = await modelled(stage, lab, pod, client, name);
    return { ...by, who: `${client} (its model: ${real.missing})` };
  }
  const { result, packets } = await stage.capture(lab.pod(pod).name, {}, () =>
    lab.exec(pod, [...real.words, name, '0', '1'], LIMIT_MS),
  );
  const report = readReport(result);
  const error = report === null ? result.stderr.trim() || 'it has said nothing' : report.err;
  return {
    who: client,
    ok: report !== null && report.addrs.length > 0,
    seconds: (report?.ms ?? result.tookMs) / 1000,
    addresses: report?.addrs ?? [],
    error: error === '' ? null : error,
    queries: askedIn(packets),
    packets,
  };
}

/** Runs this machine's C library through getent. */
async function getent(
  stage: Pick<Stage, 'capture'>,
  lab: LabCluster,
  pod: string,
  name: string,
): Promise<Looked> {
  const { result, packets } = await stage.capture(lab.pod(pod).name, {}, () =>
    lab.exec(pod, ['getent', 'ahosts', name], LIMIT_MS),
  );
  const { code, stdout, tookMs } = result;
  const addresses = [...new Set(stdout.split('\n').flatMap((line) => line.split(' ')[0] || []))];
  return {
    who: 'glibc',
    ok: code === 0,
    seconds: tookMs / 1000,
    addresses,
    error: code === 0 ? null : `getent ended with ${code ?? 'a signal'}`,
    queries: askedIn(packets),
    packets,
  };
}

/** Runs a model over real sockets, sending the same queries as the real resolver. */
export async function modelled(
  stage: Pick<Stage, 'ndots'>,
  lab: LabCluster,
  pod: string,
  client: string,
  name: string,
): Promise<Looked> {
  const words = [...stage.ndots, 'trace', name, '--client', client, '-o', 'json'];
  const { stdout, stderr } = await lab.exec(pod, words, LIMIT_MS);
  const document = JSON.parse(stdout === '' ? 'null' : stdout) as TraceDocument | null;
  if (document === null) throw new Error(`ndots trace ${name} in ${pod}: ${stderr}`);
  return lookedOf(document, `${client} (its model)`);
}

function askedIn(packets: readonly PacketRow[]): readonly AskedQuestion[] {
  return packets
    .filter(({ isQuery }) => isQuery)
    .map(({ name, type, protocol, from }) => {
      const reply = packets.find(
        (one) => one.kind === 'reply' && one.to === from && one.type === type && one.name === name,
      );
      return { name, type, protocol, answer: reply?.text ?? 'DROP' };
    });
}

/** Looks up a name in virtual time, as a pod would. */
export async function planned(
  client: string,
  name: string,
  script: Script,
  { pod, nodeResolvConf, ipv6 }: PlannedPod,
): Promise<Looked> {
  const isGetent = client === GETENT;
  const files = podFiles(pod, { clusterDns: CLUSTER_DNS, nodeResolvConf });
  const plan = {
    client: findClient(isGetent ? 'glibc' : client)!,
    name,
    addrConfig: isGetent,
    settings: {
      resolvConf: files['/etc/resolv.conf']!,
      nsswitch: null,
      hosts: null,
      hostAliases: null,
      env: {},
      host: {
        hostname: pod.name,
        addresses: [...pod.ips, ...(ipv6 ? ['fd00:244::4'] : [])],
        loopback: [4, 6] as const,
      },
    },
  };
  const report = makeReport(await planOnce(plan, script));
  return lookedOf(report, isGetent ? 'glibc' : client);
}

function lookedOf({ result, queries }: TraceDocument, who: string): Looked {
  return {
    who,
    ok: result.ok,
    seconds: result.elapsedMs / 1000,
    addresses: result.addresses,
    error: result.error,
    queries,
    packets: packetsOf(queries),
  };
}

/** Queries and replies in order, as they would appear in a capture. */
function packetsOf(queries: readonly QueryDocument[]): readonly PacketRow[] {
  const rows = queries.flatMap((query): PacketRow[] => {
    const { atMs, name, type, protocol, tookMs, answer, data, server } = query;
    const client =
      query.sourcePort === null ? `client.port${query.port}` : `client.${query.sourcePort}`;
    const to = `${server}.${query.serverPort}`;
    const over = protocol === 'tcp' ? ' (TCP)' : '';
    const both = { protocol: protocol === 'tcp' ? 'tcp' : 'udp', name, type } as const;
    const sent: PacketRow = {
      atMs,
      from: client,
      to,
      text: `${type}? ${name}${over}`,
      isQuery: true,
      isOut: true,
      kind: 'query',
      ...both,
    };
    if (tookMs === null) return [sent];
    const more = data.length > RECORDS_SHOWN ? ` … ${data.length} records` : '';
    const text =
      data.length === 0 ? answer : `NOERROR ${data.slice(0, RECORDS_SHOWN).join(' ')}${more}`;
    return [
      sent,
      {
        atMs: atMs + tookMs,
        from: to,
        to: client,
        text,
        isQuery: false,
        isOut: false,
        kind: 'reply',
        ...both,
      },
    ];
  });
  return rows.toSorted((a, b) => a.atMs - b.atMs);
}
