/**
 * A dead server behind one address, as seen in a client's capture. Each socket's packets go to one
 * server, chosen once.
 */
import type { Observations } from '../observe/observations.ts';
import type { FlowView } from '../observe/flow-view.ts';
import { excluded, unknown, type FoundCause, type FindingKind } from './finding.ts';
import { between, listed, percent, share } from '../texts.ts';
import { deadNames } from '../observe/dead-names.ts';
import { onlyAaaa } from '../observe/losses.ts';
import { askedForCluster, isLinkLocal } from '../observe/roles.ts';
import { searchDomainOf } from '../observe/search-domains.ts';
import { countOutlasting, isSilent, turnsOf, whileSilent } from '../observe/sockets.ts';
import {
  DEAD_POD_SHARES,
  MIN_SEVERAL,
  MIXED_SILENT,
  SILENT_BY_CLIENT,
  SILENT_SINGLE_QUERIES,
  SOCKET_TURNS,
  UNLIKELY_DEAD,
  WHOLE_SOCKETS_CHANCE,
} from '../thresholds/silence.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** Some sockets never get replies, whatever they query and however often, while all others always do. */
export const silentSockets: FindingKind = {
  code: 'ND3008',
  title: 'A DNS pod behind the Service does not answer',
  name: 'a dead DNS pod behind the Service',
  inCapture(observed, claims) {
    const open = new Set(claims.open.map(({ client, server }) => keyOf(client, server)));
    // A node-local cache is one process.
    const flows = whileSilent(
      observed.flows.list.filter(
        (flow) => !isLinkLocal(flow.server) && (!isSilent(flow) || open.has(keyOfFlow(flow))),
      ),
    );
    const silent = flows.filter(isSilent);
    const fine = flows.filter(({ lost }) => lost === 0);
    const several = flows.filter(({ asked }) => asked >= 2);
    const mixed = flows.length - silent.length - fine.length;
    const part = silent.length / (silent.length + fine.length);
    if (silent.length < MIN_CASES || fine.length < MIN_CASES)
      return unknown('too few sockets got no reply, or too few were answered');
    const dead = deadNames(observed, claims.open);
    if (dead.some((each) => each.chance < UNLIKELY_DEAD || searchDomainOf(each, observed) !== null))
      return excluded('losses depend on the name rather than the socket');
    if (onlyAaaa(claims.open)) return excluded('losses depend on the type rather than the socket');
    if (goesByClient(flows)) return excluded('losses depend on the client rather than the socket');
    const turns = turnsOf(flows);
    if (
      part < DEAD_POD_SHARES.least ||
      part > DEAD_POD_SHARES.most ||
      mixed > MIXED_SILENT * silent.length
    )
      return excluded('sockets lose some of their queries rather than all or none');
    const isLasting = turns.count >= SOCKET_TURNS.many || countOutlasting(flows) >= MIN_CASES;
    if (
      turns.count < SOCKET_TURNS.least ||
      turns.deviation < (isLasting ? SOCKET_TURNS.most : SOCKET_TURNS.few)
    )
      return excluded('the sockets without replies were opened at the same time');
    const bySocket = several.length >= MIN_SEVERAL && chanceOf(several) < WHOLE_SOCKETS_CHANCE;
    if (!bySocket && several.length > 0.5 * flows.length)
      return unknown('too few sockets sent more than one query without a reply');
    // The first and the last socket are always silent because of how the period is chosen.
    const inner = (silent.length - 2) / (flows.length - 2);
    const firsts = silent.map(({ firstMs }) => firstMs);
    const lastsMs = Math.max(...firsts) - Math.min(...firsts);
    const single =
      silent.length >= SILENT_SINGLE_QUERIES.lost &&
      flows.length >= SILENT_SINGLE_QUERIES.asked &&
      inner >= SILENT_SINGLE_QUERIES.least &&
      lastsMs >= SILENT_SINGLE_QUERIES.ms;
    // A resolver for external names alone is hardly a Service.
    const { found: withNames, other } = askedForCluster(observed);
    const isService = silent.some(({ server }) => withNames.has(server) || other.has(server));
    if (!bySocket && !(single && isService))
      return unknown('nearly every query uses its own socket, and few are lost');
    const keys = new Set(silent.map(keyOfFlow));
    const losses = claims.open.filter(({ client, server }) => keys.has(keyOf(client, server)));
    claims.take(losses);
    return {
      ...ofDeadPod,
      exchanges: losses,
      ...(bySocket ? bySockets(flows) : bySingles(observed, flows)),
    };
  },
};

const ofDeadPod: Pick<FoundCause, 'severity' | 'fix' | 'prove'> = {
  severity: 'critical',
  fix: [
    'List the endpoints with kubectl -n kube-system get endpointslices -l k8s-app=kube-dns, and query each one with ndots query kubernetes.default.svc.cluster.local @ENDPOINT.',
    'Delete the pod that does not answer. If it answers on its own node, check the network between nodes.',
    'Add a readinessProbe on /ready, which removes a dead pod from the Service.',
  ],
  prove: 'run ndots doctor -i any on the client’s node, where the endpoints are visible',
};

type Signs = Pick<FoundCause, 'confidence' | 'seen' | 'why' | 'disproved'>;

/** Sockets with several queries lose all of them or none. */
function bySockets(flows: readonly FlowView[]): Signs {
  const silent = flows.filter(isSilent);
  const fine = flows.filter(({ lost }) => lost === 0);
  const mixed = flows.length - silent.length - fine.length;
  const servers = [...new Set(silent.map(({ server }) => server))];
  const firsts = silent.map(({ firstMs }) => firstMs);
  return {
    confidence: 0.75,
    seen: [
      `${share(silent.length, silent.length + fine.length)} sockets that queried ${listed(servers)} got no reply to any query or repeat; the others lost ${mixed === 0 ? 'nothing' : `something in ${mixed} cases`}.`,
      `Losses depend on the socket rather than the name or type. The silent sockets sent their first queries ${between(Math.min(...firsts), Math.max(...firsts))}, while others that did so during that time are answered.`,
    ],
    why: drawnText(flows),
    disproved:
      'all endpoints answer (then new sockets are dropped because the conntrack table is full, as dmesg and conntrack -S show)',
  };
}

/** Every socket sends one query, so only the size and the evenness of the loss count. */
function bySingles(observed: Observations, flows: readonly FlowView[]): Signs {
  const silent = flows.filter(isSilent);
  const servers = [...new Set(silent.map(({ server }) => server))];
  return {
    confidence: 0.5,
    seen: [
      `${share(silent.length, flows.length)} queries to ${listed(servers)}, each from its own socket, got no reply, evenly over ${observed.seconds.toFixed(0)} s and for all kinds of queries.`,
      'If each socket sends only one query, as in Go, the capture cannot prove that losses depend on the socket, but the size and evenness of the loss suggest it.',
    ],
    why: `${drawnText(flows)} A link that drops this many packets affects all traffic, and rarely so evenly.`,
    disproved:
      'all endpoints answer, or connections to other services also lose packets (then the network is at fault, ND3013)',
  };
}

function drawnText(flows: readonly FlowView[]): string {
  const silent = flows.filter(isSilent);
  const fine = flows.filter(({ lost }) => lost === 0);
  const part = silent.length / (silent.length + fine.length);
  return `Several pods share the address, and each socket’s packets always go to the same one. ${percent(part, 1)} of the sockets got no reply, which is roughly the share of endpoints that are dead, hung or cut off. The capture does not show the endpoints themselves.`;
}

/** True if every socket of the affected clients is silent, and none of the others. */
function goesByClient(flows: readonly FlowView[]): boolean {
  const silent = flows.filter(isSilent);
  const since = new Map<string, number>();
  for (const { client, firstMs } of silent)
    since.set(client, Math.min(firstMs, since.get(client) ?? Infinity));
  const theirs = flows.filter(({ client, firstMs }) => firstMs >= (since.get(client) ?? Infinity));
  const others = flows.filter(({ client }) => !since.has(client));
  return (
    since.size * SILENT_BY_CLIENT.each <= silent.length &&
    others.length >= SILENT_BY_CLIENT.others &&
    theirs.length - silent.length <= SILENT_BY_CLIENT.answered * theirs.length
  );
}

function keyOf(
  client: { readonly address: string; readonly port: number },
  server: { readonly address: string },
): string {
  return `${client.address} ${client.port} ${server.address}`;
}

function keyOfFlow({ client, port, server }: FlowView): string {
  return `${client} ${port} ${server}`;
}

/**
 * The probability that none of these sockets loses only some of its queries, if each query were
 * equally likely to be lost.
 */
function chanceOf(flows: readonly FlowView[]): number {
  const asked = flows.reduce((sum, flow) => sum + flow.asked, 0);
  const lost = flows.reduce((sum, flow) => sum + flow.lost, 0);
  const rate = lost / asked;
  return flows.reduce(
    (chance, flow) =>
      flow.lost > 0 && flow.lost < flow.asked
        ? chance / rate
        : chance * (rate ** flow.asked + (1 - rate) ** flow.asked),
    1,
  );
}
