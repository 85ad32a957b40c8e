/** Faults of networks, as rules of nftables on a node: each has its own table, so that it can be taken away again. */
import type { LabCluster } from './cluster.ts';

/** Takes a fault away. */
export type Undo = () => void;

/** Packets that a fault is about; what is not said matches all. */
export interface PacketMatch {
  readonly from?: string | null;
  readonly to?: string | null;
  readonly protocol?: 'udp' | 'tcp' | null;
  /** Of source or destination. */
  readonly port?: number | null;
}

/** Of the packets that a node forwards, a share is lost: 0.1 is a tenth. */
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
  return table(
    lab,
    node,
    name,
    `chain forward {
    type filter hook forward priority -20; policy accept;
    ${[...all, 'counter drop'].join(' ')}
  }`,
  );
}

/**
 * The second of two packets that leave one port within `windowMs` is lost: what a kernel before 5.8 did with A and AAAA of one lookup
 * when it translated both addresses at once.
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

/** Of the packets that leave for an address, so many pass in a second and the others are lost: a cloud's limit for its resolver. */
export function limitPackets(
  lab: LabCluster,
  node: string,
  address: string,
  perSecond: number,
  name = 'limit',
): Undo {
  return table(
    lab,
    node,
    name,
    `chain out {
    type filter hook forward priority 10; policy accept;
    ip daddr ${address} limit rate over ${perSecond}/second burst ${Math.ceil(perSecond / 20)} packets counter drop
  }`,
  );
}

/** TCP from an address to port 53 goes nowhere (`drop`), or is refused with a reset (`reject`). */
export function blockTcp(
  lab: LabCluster,
  node: string,
  from: string,
  how: 'drop' | 'reject',
  name = 'tcp',
): Undo {
  const verdict = how === 'drop' ? 'drop' : 'reject with tcp reset';
  return table(
    lab,
    node,
    name,
    `chain forward {
    type filter hook forward priority -10; policy accept;
    ip saddr ${from} tcp dport 53 counter ${verdict}
  }`,
  );
}

/** No more than so many connections are tracked: what comes beyond is lost, as with a table that is full. */
export function limitConnections(lab: LabCluster, node: string, most: number, name = 'full'): Undo {
  return table(
    lab,
    node,
    name,
    `chain forward {
    type filter hook forward priority -10; policy accept;
    ct state new ct count over ${most} counter drop
  }`,
  );
}

/** How many packets a fault has taken. */
export function lostBy(lab: LabCluster, node: string, name: string): number {
  const text = lab.network.run(node, ['nft', 'list', 'table', 'ip', tableName(name)]);
  return Number(/counter packets (\d+)/.exec(text)?.[1] ?? '0');
}

function tableName(name: string): string {
  return `ndots-lab-${name}`;
}

function table(lab: LabCluster, node: string, name: string, body: string): Undo {
  const own = `table ip ${tableName(name)}`;
  lab.network.run(node, ['nft', '-f', '-'], `add ${own}\ndelete ${own}\n${own} {\n  ${body}\n}\n`);
  return () => {
    lab.network.run(node, ['nft', '-f', '-'], `delete ${own}\n`);
  };
}
