/**
 * Network faults, as the contents of nftables tables on a node. Each fault has a separate table, so that it can be
 * removed again.
 */
import type { LabCluster } from './cluster.ts';

export type Undo = () => void;

/** Selects the packets that a fault applies to. Null matches everything. */
export interface PacketMatch {
  readonly from: string | null;
  readonly to: string | null;
  readonly protocol: 'udp' | 'tcp' | null;
  /** Destination port. */
  readonly port: number | null;
}

/** Drops a fraction of the packets that a node forwards, where 0.1 is a tenth. */
export function losePackets({ from, to, protocol, port }: PacketMatch, share: number): string {
  const words = [
    ...(from ? [`ip saddr ${from}`] : []),
    ...(to ? [`ip daddr ${to}`] : []),
    ...(protocol === null ? [] : [`meta l4proto ${protocol}`]),
    ...(port === null ? [] : [`th dport ${port}`]),
    ...(share >= 1 ? [] : [`meta random < ${fractionOf(share)}`]),
  ];
  return forwarded(-20, [...words, 'counter drop'].join(' '));
}

/** A fraction of the numbers that `meta random` generates, which have 32 bits. */
function fractionOf(share: number): number {
  return Math.min(0xffff_ffff, Math.round(share * 0x1_0000_0000));
}

/**
 * Drops the second of two packets that one port sends within `windowMs`. Kernels before 5.8 lost one of a lookup's A
 * and AAAA queries this way if both were being translated at once.
 */
export function loseSecondOfPair(windowMs: number): string {
  return `set seen { type ipv4_addr . inet_service; flags dynamic,timeout; timeout ${windowMs}ms; }
  chain raw {
    type filter hook prerouting priority -310; policy accept;
    udp dport 53 ip saddr . udp sport @seen counter drop
    udp dport 53 add @seen { ip saddr . udp sport }
  }`;
}

/** Limits the rate of packets to an address and drops any excess, as clouds do to protect their resolvers. */
export function limitPackets(address: string, perSecond: number): string {
  const rate = `limit rate over ${perSecond}/second burst ${Math.ceil(perSecond / 20)} packets`;
  return forwarded(10, `ip daddr ${address} ${rate} counter drop`);
}

/** Blocks TCP from an address to port 53, either silently (`drop`) or with a reset (`reject`). */
export function blockTcp(from: string, how: 'drop' | 'reject'): string {
  const verdict = how === 'drop' ? 'drop' : 'reject with tcp reset';
  return forwarded(-10, `ip saddr ${from} tcp dport 53 counter ${verdict}`);
}

/** Limits the number of tracked connections. Packets for any others are dropped, as if the table were full. */
export function limitConnections(most: number): string {
  return forwarded(-10, `ct state new ct count over ${most} counter drop`);
}

/** A chain with a rule for forwarded packets. */
function forwarded(priority: number, rule: string): string {
  return `chain forward {
    type filter hook forward priority ${priority}; policy accept;
    ${rule}
  }`;
}

/** Writes a fault's table on a node, and returns a function that removes it. */
export function startFault(lab: LabCluster, node: string, name: string, body: string): Undo {
  const own = `table ip ${tableName(name)}`;
  lab.network.run(node, ['nft', '-f', '-'], `add ${own}\ndelete ${own}\n${own} {\n  ${body}\n}\n`);
  return () => {
    lab.network.run(node, ['nft', '-f', '-'], `delete ${own}\n`);
  };
}

/** Returns the number of packets that a fault has dropped. */
export function lostBy(lab: LabCluster, node: string, name: string): number {
  const text = lab.network.run(node, ['nft', 'list', 'table', 'ip', tableName(name)]);
  return Number(/counter packets (\d+)/.exec(text)?.[1] ?? '0');
}

function tableName(name: string): string {
  return `ndots-lab-${name}`;
}
