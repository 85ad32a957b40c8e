/**
 * The packet filter rules of a node cache, as data: those of NodeLocal DNSCache, and the lease that
 * releases its addresses.
 */

/** The action of a rule for a packet. */
export type PacketAction =
  /** Connection tracking, and with it the translation of service addresses, passes it by. */
  | 'notrack'
  | 'accept'
  /** A heartbeat of the cache: restarts the lease of its source address. */
  | 'renew'
  /**
   * The lease of the address that it goes to is over: it goes the way of all packets, to the
   * cluster's service.
   */
  | 'lapse';

/** One rule for one local address. An absent field matches everything. */
export interface PacketRule {
  readonly table: 'raw' | 'filter';
  readonly chain: 'PREROUTING' | 'INPUT' | 'OUTPUT';
  readonly protocol: 'tcp' | 'udp';
  readonly family: 4 | 6;
  readonly from?: string;
  /** The packet does not come from there. */
  readonly notFrom?: string;
  readonly to?: string;
  readonly fromPort?: number;
  readonly toPort?: number;
  readonly action: PacketAction;
  readonly comment: string;
}

/** The comments of NodeLocal DNSCache's rules: other programs find the rules by them. */
const COMMENT = {
  skip: 'NodeLocal DNS Cache: skip conntrack',
  allow: 'NodeLocal DNS Cache: allow DNS traffic',
  renew: 'NodeLocal DNS Cache: sign of life',
  lapse: 'NodeLocal DNS Cache: no sign of life',
} as const;

/** The input of the rules. */
export interface RuleParts {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly healthPort: number;
  /** True if the addresses are released without signs of life. */
  readonly lease: boolean;
}

/**
 * A program that sets rules waits for a lock for 5 s at most: one that has not ended by then is
 * ended, milliseconds.
 */
export const RULE_LIMIT_MS: number = 8000;

/**
 * The source address of the cache's own heartbeat: no other program asks a local address from a
 * loopback one.
 */
export const HEARTBEAT_SOURCE = { 4: '127.0.0.1', 6: '::1' } as const;

/** All rules, in the order in which each chain must have them. */
export function nodeRules(parts: RuleParts): readonly PacketRule[] {
  const rules = parts.addresses.flatMap((address) => rulesFor(address, parts));
  const order = (rule: PacketRule): number => ['renew', 'lapse'].indexOf(rule.action) + 1 || 3;
  return rules.toSorted((a, b) => order(a) - order(b));
}

function rulesFor(address: string, { port, healthPort, lease }: RuleParts): readonly PacketRule[] {
  const family = address.includes(':') ? 6 : 4;
  const heart = HEARTBEAT_SOURCE[family];
  const raw = { table: 'raw', family } as const;
  const filter = { table: 'filter', family, action: 'accept', comment: COMMENT.allow } as const;
  const skip = { ...raw, action: 'notrack', comment: COMMENT.skip } as const;
  const lapse = { ...raw, action: 'lapse', comment: COMMENT.lapse } as const;
  const renew = { ...raw, action: 'renew', comment: COMMENT.renew } as const;
  const both = (rule: Omit<PacketRule, 'protocol'>): readonly PacketRule[] => [
    { ...rule, protocol: 'tcp' },
    { ...rule, protocol: 'udp' },
  ];
  const leased: readonly PacketRule[] = [
    { ...renew, chain: 'OUTPUT', protocol: 'udp', from: address, to: heart, fromPort: port },
    ...both({ ...lapse, chain: 'PREROUTING', to: address, toPort: port }),
    ...both({ ...lapse, chain: 'OUTPUT', notFrom: heart, to: address, toPort: port }),
  ];
  return [
    ...(lease ? leased : []),
    ...both({ ...skip, chain: 'PREROUTING', to: address, toPort: port }),
    ...both({ ...filter, chain: 'INPUT', to: address, toPort: port }),
    ...both({ ...skip, chain: 'OUTPUT', from: address, fromPort: port }),
    ...both({ ...filter, chain: 'OUTPUT', from: address, fromPort: port }),
    ...both({ ...skip, chain: 'OUTPUT', to: address, toPort: port }),
    { ...skip, chain: 'OUTPUT', protocol: 'tcp', to: address, toPort: healthPort },
    { ...skip, chain: 'OUTPUT', protocol: 'tcp', from: address, fromPort: healthPort },
  ];
}

/** True if a rule leads packets to the cache that would go to the cluster's service without it. */
export function leadsHere({ action, toPort, to }: PacketRule): boolean {
  return action === 'notrack' && to !== undefined && toPort !== undefined;
}

/** The result of maintaining the rules. */
export interface Ensured {
  /** Rules that were missing, or in the wrong place, and have been put back. */
  readonly missing: number;
}

/** The rules, by one of the programs that set them. */
export interface RuleSet {
  /** The program: `iptables`, `nftables`. */
  readonly name: string;
  /**
   * Restores missing rules.
   * @throws RuleFailure
   */
  ensure(): Promise<Ensured>;
  /**
   * Removes the rules that lead packets here. Rules that keep replies out of connection tracking
   * stay: a tracked reply would be the first packet of a connection, and bind later queries from
   * the same port to it.
   * @throws RuleFailure
   */
  divert(): Promise<void>;
  /** Removes all our rules, duplicates included, and no others. @throws RuleFailure */
  remove(): Promise<void>;
  /** Releases what ends with this process, while another instance keeps the rules. */
  leave(): void;
  /** Lines for a shell that remove them after this process has ended. */
  readonly removal: readonly string[];
}

/** Why rules could not be looked after. */
export class RuleFailure extends Error {
  override readonly name = 'RuleFailure';
  /** Another program holds the lock of iptables: the next try is likely to succeed. */
  readonly locked: boolean;

  constructor(text: string, locked = false) {
    super(text);
    this.locked = locked;
  }
}
