/** Corefiles that one of the two takes and the other refuses. */

/** What the two make of one Corefile. */
export interface Verdicts {
  readonly text: string;
  /** Why CoreDNS refuses it; null: it takes it. */
  readonly theirs: string | null;
  /** What ndots finds wrong; empty: it takes it. */
  readonly ours: readonly string[];
}

/** Whether they differ in a way that docs/coredns.md does not tell of. */
export function differ({ text, theirs, ours }: Verdicts): boolean {
  if ((theirs === null) === (ours.length === 0)) return false;
  if (theirs !== null)
    return !takenHere.some((rule) => rule.says.test(theirs) && rule.in.test(text));
  // Of two `etcd` CoreDNS reads one.
  const both = /^\s*etcd [^]*^\s*etcd /m.test(text);
  if (both && ours.every((line) => line.includes('plugin/etcd: '))) return false;
  // Behind a brace that is missing, too much, or on the next line, every line means something else.
  return (
    !/^\s*\{ +\S/m.test(text) &&
    !ours.some((line) => braces.test(line)) &&
    !ours.every((line) => refusedHere.some((says) => says.test(line)))
  );
}

/** "Corefiles that one takes and the other refuses": refused here, which CoreDNS takes. */
const braces =
  /expecting '\}'|after '[{}]'|no matching opening brace|Unexpected token '\{'|unknown property '[{}]'|Unknown directive '[{}]'/;
const refusedHere: readonly RegExp[] = [
  // Lines in the braces of `dns64 PREFIX`.
  /plugin\/dns64: .*unknown property/,
  // Of `key PATH`, without `file`, CoreDNS makes nothing.
  /plugin\/dnssec: .*unknown source of keys/,
  // Of `root A B C` CoreDNS takes C.
  /plugin\/root: .*Wrong argument count/,
  // Two that add up to what none may say.
  /plugin\/loadbalance: .*unknown property '(?:prefer|reload)'/,
  // Addresses and ports at which nothing can be.
  /is no URL of an API server|not an endpoint|not an IP address|invalid port|too many colons in address|address not available/,
  /plugin\/bind: nothing is left of|plugin\/bind: not a valid IP address or interface name/,
  // Names that no message can hold.
  /not a (?:valid )?domain name|invalid catalog member zone/,
  // Numbers that are too large.
  /cache TTL can not be zero or negative: \d{19,}|TTL too large/,
  // What is needed and is not there.
  /needs a certificate: this server block has no 'tls'/,
  /TLS config file cannot be read|could not load TLS cert/,
  // One address, for two that cannot share it.
  /is to be served both with TLS and without/,
  // What is not there here.
  /the transport '\w+' is not available/,
];

/** The other way round. */
const takenHere: readonly { readonly says: RegExp; readonly in: RegExp }[] = [
  // Addresses that stand twice.
  { says: /it is already defined/, in: /\bbind\b/ },
  // Words without effect.
  { says: /plugin\/etcd: /, in: /^\s*(?:debug|stubzones|upstream) /m },
  { says: /invalid URL escape/, in: /etcd/ },
  // Types in lower case, and types and classes without a name.
  {
    says: /expect legal QTYPE/,
    in: /^\s*(?:allow|block|filter|drop) type [^\n]*\b(?:[a-z]+|TYPE\d+)\b/m,
  },
  { says: /invalid RR class TYPE\d+|invalid query class CLASS\d+/, in: /template/ },
  // A directive that a later one replaces, and an endpoint behind the first.
  { says: /plugin\/file: file /, in: /^\s*file [^]*^\s*file /m },
  { says: /host must be a URL/, in: /^\s*endpoint [^]*^\s*endpoint /m },
  {
    says: /plugin\/(?:tls|autopath|timeouts): /,
    in: /^\s*(tls|autopath|timeouts) ?[^\n]*\n[^]*^\s*\1\b/m,
  },
  { says: /plugin\/etcd: could not load/, in: /^\s*tls [^]*^\s*tls /m },
  // Periods of old health checks.
  { says: /(?:missing|unknown) unit|invalid duration/, in: /health_check/ },
  // Link-local addresses with their interface.
  { says: /./, in: /fe80::1%lo/ },
  { says: /bind: cannot assign requested address/, in: /\bbind\b/ },
  // A word behind the braces of `dns64 PREFIX`, of which CoreDNS reads each line as a directive.
  { says: /plugin\/dns64: invalid CIDR address/, in: /^\s*dns64 \S+ \{[^}]*\} +\S/m },
  // One without primaries behind one that has some.
  {
    says: /secondary zones require a transfer from property/,
    in: /^\s*secondary [^]*transfer from [^]*\bsecondary\b/m,
  },
  // Empty braces are none.
  { says: /no resolv-conf specified/, in: /^\s*autopath [^\n]*\{\n\s*\}/m },
  { says: /no rule type specified/, in: /^\s*rewrite [^\n]*\{\n\s*\}/m },
  // Words that CoreDNS takes for a line of their own.
  { says: /plugin\/cancel: /, in: /^\s*cancel [^\n]*\{/m },
  // What several of them say adds up.
  { says: /unknown property 'reload'/, in: /^\s*loadbalance[^]*^\s*loadbalance weighted/m },
  // An empty word is none.
  { says: /could not load TLS cert: open : |requires fallthrough/, in: /\{[%$]NOPE/ },
  // CoreDNS itself fails.
  { says: /^panic: /, in: /./ },
  { says: /error parsing command/, in: /^\s*on / },
  { says: /failed to resolve "0x10"/, in: /forward/ },
];
