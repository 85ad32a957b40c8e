/**
 * A node cache's packet filter rules as data. They include NodeLocal DNSCache's rules, and the lease that releases the
 * addresses.
 */

/** A rule's action for a packet. */
export type PacketAction =
  /** Exempts the packet from connection tracking, and thus from the translation of service addresses. */
  | 'notrack'
  | 'accept'
  /** A heartbeat sent by the cache, which restarts the lease on its source address. */
  | 'renew'
  /** The lease on the destination address has ended, so the packet goes to the cluster's service like any other. */
  | 'lapse';

/** One rule for one local address. A field that is absent matches everything. */
export interface PacketRule {
  readonly table: 'raw' | 'filter';
  readonly chain: 'PREROUTING' | 'INPUT' | 'OUTPUT';
  readonly protocol: 'tcp' | 'udp';
  readonly family: 4 | 6;
  readonly from?: string;
  /** Matches packets that do not come from this address. */
  readonly notFrom?: string;
  readonly to?: string;
  readonly fromPort?: number;
  readonly toPort?: number;
  readonly action: PacketAction;
  readonly comment: string;
}

/** The comments on NodeLocal DNSCache's rules, which other programs use to find them. */
const COMMENT = {
  skip: 'NodeLocal DNS Cache: skip conntrack',
  allow: 'NodeLocal DNS Cache: allow DNS traffic',
  renew: 'NodeLocal DNS Cache: sign of life',
  lapse: 'NodeLocal DNS Cache: no sign of life',
} as const;

export interface RuleParts {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly healthPort: number;
  /** True if the addresses are released when there are no heartbeats. */
  readonly lease: boolean;
}

/** Milliseconds after which a program that sets rules is killed. It waits for a lock for at most 5 s. */
export const RULE_LIMIT_MS: number = 8000;

/**
 * The source address of the cache's own heartbeat. No other program queries a local address from a loopback address.
 */
export const HEARTBEAT_SOURCE = { 4: '127.0.0.1', 6: '::1' } as const;

/** Returns all rules in the order that each chain requires. */
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

/** Returns true if a rule directs packets to the cache that would otherwise go to the cluster's service. */
export function leadsHere({ action, toPort, to }: PacketRule): boolean {
  return action === 'notrack' && to !== undefined && toPort !== undefined;
}

export interface Ensured {
  /** Number of rules that were missing or in the wrong place, and have been restored. */
  readonly missing: number;
}

/** The rules, as managed by one of the programs that can set them. */
export interface RuleSet {
  /** The program: `iptables`, `nftables`. */
  readonly name: string;
  /**
   * Restores missing rules.
   * @throws RuleFailure
   */
  ensure(): Promise<Ensured>;
  /**
   * Removes the rules that direct packets here. Rules that exempt replies from connection tracking stay. A tracked
   * reply would be the first packet of a connection, and bind later queries from the same port to it.
   * @throws RuleFailure
   */
  divert(): Promise<void>;
  /**
   * Removes all our rules, including duplicates, and no others.
   * @throws RuleFailure
   */
  remove(): Promise<void>;
  /** Releases everything that ends with this process, while another instance keeps the rules. */
  leave(): void;
  /** Shell commands that remove the rules after this process has ended. */
  readonly removal: readonly string[];
}

/** Reports that rules could not be maintained. */
export class RuleFailure extends Error {
  override readonly name = 'RuleFailure';
  /** True if another program holds the iptables lock, in which case the next attempt is likely to succeed. */
  readonly locked: boolean;

  constructor(text: string, locked = false) {
    super(text);
    this.locked = locked;
  }
}
