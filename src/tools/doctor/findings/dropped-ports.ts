/** Sockets that get no reply because their source port is in a blocked range. */
import type { FlowView } from '../observe/flow-view.ts';
import { choices } from '../observe/dead-names.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, share } from '../texts.ts';
import { isSilent, turnsOf, whileSilent } from '../observe/sockets.ts';
import { MAX_CHANCE_OF_MANY } from '../thresholds/evidence.ts';
import { PORT_RANGE_SHARES, PORT_RANGE_SOCKETS, SILENT_BY_TIME } from '../thresholds/transport.ts';

export const droppedPorts: FindingKind = {
  code: 'ND3020',
  title: 'Queries from a range of source ports get no reply',
  name: 'a range of source ports that is dropped',
  inCapture(observed, claims) {
    const open = new Set(claims.open.map(({ client }) => `${client.address} ${client.port}`));
    const flows = whileSilent(
      observed.flows.list.filter(
        (flow) => !isSilent(flow) || open.has(`${flow.client} ${flow.port}`),
      ),
    );
    const silent = flows.filter(isSilent).length;
    const range = rangeOf(flows);
    if (
      silent < PORT_RANGE_SOCKETS.silent ||
      flows.length - silent < PORT_RANGE_SOCKETS.fine ||
      range === null
    )
      return unknown('too few sockets got no reply, or too few were answered');
    const { from, to, lost, answered } = range;
    // Of N sockets there are about N²/2 ranges.
    const chance = Math.exp(2 * Math.log(flows.length) - choices(flows.length, silent));
    if (
      lost < PORT_RANGE_SHARES.silent * silent ||
      answered > PORT_RANGE_SHARES.fine * (lost + answered) ||
      flows.length - lost - answered < PORT_RANGE_SOCKETS.fine ||
      chance > MAX_CHANCE_OF_MANY
    )
      return excluded('sockets without replies and other sockets have similar ports');
    if (turnsOf(flows).deviation < SILENT_BY_TIME)
      return excluded('the sockets without replies all date from one moment');
    const losses = claims.open.filter(({ client }) => client.port >= from && client.port <= to);
    claims.take(losses);
    const servers = [...new Set(losses.map(({ server }) => server.address))];
    return {
      severity: 'critical',
      confidence: silent >= 2 * PORT_RANGE_SOCKETS.silent ? 0.9 : 0.8,
      seen: [
        `On source ports ${from} to ${to}, ${share(lost, lost + answered)} sockets that queried ${listed(servers)} got no reply, from any client. On other ports, ${share(silent - lost, flows.length - lost - answered)} sockets got none.`,
      ],
      why: 'Losses depend on the source port. A client chooses a new port for each lookup, so some lookups have to wait. Something in transit allows replies (or queries) for only some ports. A stateless firewall rule or cloud network ACL may open too few ephemeral ports for replies. Other possible causes are ports reserved on the node (NodePort Services, 30000 to 32767) or an address translation that uses another host’s ports.',
      fix: [
        `Find the rules on the path that mention ports between ${from} and ${to}. Check firewalls, nft list ruleset on both nodes, and network ACLs (they are stateless, so replies need all ephemeral ports, 1024 to 65535).`,
        'Until then, set the pods’ net.ipv4.ip_local_port_range (a safe sysctl) to the ports that work.',
      ],
      prove: `run dig -b 0.0.0.0#${Math.trunc((from + to) / 2)} @${servers[0]} kubernetes.default.svc.cluster.local, then the same with a port outside the range`,
      disproved: 'queries from a port in that range are answered every time',
      exchanges: losses,
    };
  },
};

interface PortRange {
  readonly from: number;
  readonly to: number;
  /** Sockets in the range without a reply, and with one. */
  readonly lost: number;
  readonly answered: number;
}

/** The port range with the largest surplus of silent sockets over answered ones. */
function rangeOf(flows: readonly FlowView[]): PortRange | null {
  const sorted = flows.toSorted((one, other) => one.port - other.port);
  let best: PortRange | null = null;
  let most = 0;
  let [first, lost, answered] = [0, 0, 0];
  for (const flow of sorted) {
    if (lost - answered <= 0) [first, lost, answered] = [flow.port, 0, 0];
    if (isSilent(flow)) lost++;
    else answered++;
    if (lost - answered > most) {
      most = lost - answered;
      best = { from: first, to: flow.port, lost, answered };
    }
  }
  return best;
}
