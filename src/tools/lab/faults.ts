/**
 * Network faults, implemented as nftables rules on a node. Each fault has a separate table, so that it can be removed
 * again.
 */
import type { LabCluster } from './cluster.ts';

export type Undo = () => void;

/** Selects the packets that a fault applies to. A missing field matches everything. */
export interface PacketMatch {
  readonly from?: string | null;
  readonly to?: string | null;
  readonly protocol?: 'udp' | 'tcp' | null;
  /** Source or destination port. */
  readonly port?: number | null;
}

/** Drops a fraction of the packets that a node forwards, where 0.1 is a tenth. */
export function losePackets(
  lab: LabCluster,
  node: string,
  match: PacketMatch,
  share: number,
  name = 'loss',
): Undo {
  const { from, to, protocol, port } = match;
  const words = [
    ...(from ? [`ip saddr ${from}`] : []),
    ...(to ? [`ip daddr ${to}`] : []),
    ...(protocol ? [`meta l4proto ${protocol}`] : []),
    ...(port ? [`th dport ${port}`] : []),
    `meta random < ${Math.min(0xffff_ffff, Math.round(share * 0x1_0000_0000))}`,
  ];
  const all = share >= 1 ? words.slice(0, -1) : words;
  return forwardRule(lab, node, name, -20, [...all, 'counter drop'].join(' '));
}

/**
 * Drops the second of two packets that one port sends within `windowMs`. Kernels before 5.8 lost one of a lookup's A
 * and AAAA queries this way if both were being translated at once.
 */
export function loseSecondOfPair(
  lab: LabCluster,
  node: string,
  windowMs = 20,
  name = 'second',
): Undo {
  return table(
    lab,
    node,
    name,
    `set seen { type ipv4_addr . inet_service; flags dynamic,timeout; timeout ${windowMs}ms; }
  chain raw {
    type filter hook prerouting priority -310; policy accept;
    udp dport 53 ip saddr . udp sport @seen counter drop
    udp dport 53 add @seen { ip saddr . udp sport }
  }`,
  );
}

/** Limits the rate of packets to an address and drops any excess, as clouds do to protect their resolvers. */
export function limitPackets(
  lab: LabCluster,
  node: string,
  address: string,
  perSecond: number,
  name = 'limit',
): Undo {
  const rate = `limit rate over ${perSecond}/second burst ${Math.ceil(perSecond / 20)} packets`;
  return forwardRule(lab, node, name, 10, `ip daddr ${address} ${rate} counter drop`);
}

/** Blocks TCP from an address to port 53, either silently (`drop`) or with a reset (`reject`). */
export function blockTcp(
  lab: LabCluster,
  node: string,
  from: string,
  how: 'drop' | 'reject',
  name = 'tcp',
): Undo {
  const verdict = how === 'drop' ? 'drop' : 'reject with tcp reset';
  return forwardRule(lab, node, name, -10, `ip saddr ${from} tcp dport 53 counter ${verdict}`);
}

/** Limits the number of tracked connections. Packets for any others are dropped, as if the table were full. */
export function limitConnections(lab: LabCluster, node: string, most: number, name = 'full'): Undo {
  return forwardRule(lab, node, name, -10, `ct state new ct count over ${most} counter drop`);
}

/** Returns the number of packets that a fault has dropped. */
export function lostBy(lab: LabCluster, node: string, name: string): number {
  const text = lab.network.run(node, ['nft', 'list', 'table', 'ip', tableName(name)]);
  return Number(/counter packets (\d+)/.exec(text)?.[1] ?? '0');
}

function tableName(name: string): string {
  return `ndots-lab-${name}`;
}

/** @param rule for forwarded packets, in nft(8) syntax */
function forwardRule(
  lab: LabCluster,
  node: string,
  name: string,
  priority: number,
  rule: string,
): Undo {
  const chain = `chain forward {
    type filter hook forward priority ${priority}; policy accept;
    ${rule}
  }`;
  return table(lab, node, name, chain);
}

function table(lab: LabCluster, node: string, name: string, body: string): Undo {
  const own = `table ip ${tableName(name)}`;
  lab.network.run(node, ['nft', '-f', '-'], `add ${own}\ndelete ${own}\n${own} {\n  ${body}\n}\n`);
  return () => {
    lab.network.run(node, ['nft', '-f', '-'], `delete ${own}\n`);
  };
}
