/** What a capture at a client shows of a dead server behind one address: where a socket's packets go is drawn once for each socket. */
import type { FlowView } from '../evidence/flow-view.ts';
import { excluded, listed, percent, share, unknown, type Rule } from './finding.ts';

const LEAST = 4;

/** Some sockets get nothing, whatever they ask and however often; all others get everything. */
export const silentSockets: Rule = {
  code: 'ND3008',
  title: 'One of the DNS pods behind the service does not answer',
  name: 'a dead DNS pod behind the service',
  check(observed, claims) {
    const open = new Set(claims.open.map(({ client, server }) => keyOf(client, server)));
    const flows = observed.flows.list.toSorted((one, other) => one.firstMs - other.firstMs);
    const silent = flows.filter((flow) => flow.lost === flow.asked && open.has(keyOfFlow(flow)));
    const repeated = silent.filter(({ asked }) => asked >= 2);
    const mixed = flows.filter(({ lost, asked }) => lost > 0 && lost < asked);
    const fine = flows.filter(({ lost }) => lost === 0);
    if (repeated.length < LEAST || fine.length < LEAST)
      return unknown('too few sockets were asked from more than once without a reply');
    const part = silent.length / (silent.length + fine.length);
    if (mixed.length > 0.1 * repeated.length || part < 0.08 || part > 0.75)
      return excluded('sockets lose single queries, not all or none');
    if (turns(flows) < 2 * LEAST) return excluded('sockets that get nothing are of one moment');
    const keys = new Set(silent.map(keyOfFlow));
    const losses = claims.open.filter(({ client, server }) => keys.has(keyOf(client, server)));
    claims.take(losses);
    const servers = [...new Set(silent.map(({ server }) => server))];
    const pods = Math.round(1 / part);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.75,
      seen: [
        `${share(silent.length, silent.length + fine.length)} sockets that asked ${listed(servers)} got no reply at all, to none of their queries and repeats; the others lost ${mixed.length === 0 ? 'nothing' : `something in ${mixed.length} cases`}.`,
        'It depends on the socket, and neither on the name nor on the type nor on the moment.',
      ],
      why: `The address stands for several pods, and which of them a socket’s packets go to is drawn once for each socket. ${percent(part, 1)} is about one in ${pods}: one of ${pods} endpoints that is dead, hung or cut off looks like this. The capture does not show the endpoints themselves.`,
      fix: [
        'List the endpoints and ask each: kubectl -n kube-system get endpointslices -l k8s-app=kube-dns; ndots query kubernetes.default.svc.cluster.local @ENDPOINT.',
        'Delete the pod that does not answer; if it answers on its own node, look at the network between nodes.',
        'A readinessProbe on /ready takes a dead pod out of the service.',
      ],
      prove: 'ndots doctor -i any on the client’s node: there the endpoints can be seen',
      disproved:
        'all endpoints answer: then new sockets are dropped (conntrack table full: dmesg, conntrack -S)',
      exchanges: losses,
    };
  },
};

function keyOf(
  client: { readonly address: string; readonly port: number },
  server: { readonly address: string },
): string {
  return `${client.address} ${client.port} ${server.address}`;
}

function keyOfFlow({ client, port, server }: FlowView): string {
  return `${client} ${port} ${server}`;
}

/** How often a socket that gets nothing follows one that gets everything, or the other way round. */
function turns(flows: readonly FlowView[]): number {
  let count = 0;
  for (let at = 1; at < flows.length; at++)
    if (isSilent(flows[at]!) !== isSilent(flows[at - 1]!)) count++;
  return count;
}

function isSilent({ lost, asked }: FlowView): boolean {
  return lost === asked;
}
