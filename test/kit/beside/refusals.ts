/** Compares which Corefiles the two servers accept. */

export interface Verdicts {
  readonly text: string;
  /** CoreDNS's problem with it, or null if it accepts it. */
  readonly theirs: string | null;
  /** The problems that ndots reports. Empty if it accepts the Corefile. */
  readonly ours: readonly string[];
}

/** True if the refusals differ in a way not listed in docs/coredns.md. */
export function differ({ text, theirs, ours }: Verdicts): boolean {
  if ((theirs === null) === (ours.length === 0)) return false;
  if (closedWithinLine.test(text)) return false;
  if (theirs !== null)
    return !takenHere.some((rule) => rule.says.test(theirs) && rule.in.test(text));
  // CoreDNS reads only one of two `etcd` directives.
  const both = /^\s*etcd [^]*^\s*etcd /m.test(text);
  if (both && ours.every((line) => line.includes('plugin/etcd: '))) return false;
  // A missing, extra or misplaced brace changes the meaning of every line after it.
  return (
    !/^\s*\{ +\S/m.test(text) &&
    !ours.some((line) => braces.test(line)) &&
    !ours.every((line) => refusedHere.some((says) => says.test(line)))
  );
}

/**
 * A `}` after the words of a property. ndots ends the braces there, and CoreDNS reads it and the rest of the line as the
 * property's words.
 */
const closedWithinLine = /^[^\n{]*[^\s{}][ \t]+\}/m;

/** Entries in "Corefiles that one takes and the other refuses" that are refused here but accepted by CoreDNS. */
const braces =
  /expecting '\}'|after '[{}]'|no matching opening brace|Unexpected token '\{'|unknown property '[{}]'|Unknown directive '[{}]'/;
const refusedHere: readonly RegExp[] = [
  // Lines in the braces of `dns64 PREFIX`.
  /plugin\/dns64: .*unknown property/,
  // CoreDNS ignores `key PATH` without `file`.
  /plugin\/dnssec: .*unknown key source/,
  // In `root A B C`, CoreDNS uses C.
  /plugin\/root: .*Wrong argument count/,
  // Two directives that together produce a value that is invalid in either.
  /plugin\/loadbalance: .*unknown property '(?:prefer|reload)'/,
  // Unusable addresses and ports.
  /is not an API server URL|not an (?:etcd )?endpoint|not an IP address|invalid port|too many colons in address|address not available/,
  /plugin\/bind:|plugin\/bind: not a valid IP address or interface name/,
  // Names that do not fit into a message.
  /not a (?:valid )?domain name|invalid catalog member zone/,
  // Numbers that are too large.
  /cache TTL can not be zero or negative: \d{19,}|TTL too large/,
  // Missing requirements.
  /needs a certificate: this server block has no 'tls'/,
  /TLS config file cannot be read|could not load TLS cert/,
  // One address for two listeners that cannot share it.
  /would be served both with and without TLS/,
  // Parts that are not available.
  /the transport '\w+' is not available/,
];

/** Corefiles that are accepted here but refused by CoreDNS. */
const takenHere: readonly { readonly says: RegExp; readonly in: RegExp }[] = [
  // Duplicate addresses.
  { says: /it is already defined/, in: /\bbind\b/ },
  // Words without effect.
  { says: /plugin\/etcd: /, in: /^\s*(?:debug|stubzones|upstream) /m },
  { says: /invalid URL escape/, in: /etcd/ },
  // Types in lower case, and numeric types and classes that have no name.
  {
    says: /expect legal QTYPE/,
    in: /^\s*(?:allow|block|filter|drop) type [^\n]*\b(?:[a-z]+|TYPE\d+)\b/m,
  },
  { says: /invalid RR class TYPE\d+|invalid query class CLASS\d+/, in: /template/ },
  // A directive replaced by a later one, and any endpoint after the first.
  { says: /plugin\/file: file /, in: /^\s*file [^]*^\s*file /m },
  { says: /host must be a URL/, in: /^\s*endpoint [^]*^\s*endpoint /m },
  {
    says: /plugin\/(?:tls|autopath|timeouts): /,
    in: /^\s*(tls|autopath|timeouts) ?[^\n]*\n[^]*^\s*\1\b/m,
  },
  { says: /plugin\/etcd: could not load/, in: /^\s*tls [^]*^\s*tls /m },
  // Intervals of old health checks.
  { says: /(?:missing|unknown) unit|invalid duration/, in: /health_check/ },
  // Link-local addresses that include their interface.
  { says: /./, in: /fe80::1%lo/ },
  { says: /bind: cannot assign requested address/, in: /\bbind\b/ },
  // A word after the braces of `dns64 PREFIX`, because CoreDNS reads each line there as a directive.
  { says: /plugin\/dns64: invalid CIDR address/, in: /^\s*dns64 \S+ \{[^}]*\} +\S/m },
  // A directive without primaries that follows one with primaries.
  {
    says: /secondary zones require a transfer from property/,
    in: /^\s*secondary [^]*transfer from [^]*\bsecondary\b/m,
  },
  // Empty braces are ignored.
  { says: /no resolv-conf specified/, in: /^\s*autopath [^\n]*\{\n\s*\}/m },
  { says: /no rule type specified/, in: /^\s*rewrite [^\n]*\{\n\s*\}/m },
  // Words that CoreDNS reads as a separate line.
  { says: /plugin\/cancel: /, in: /^\s*cancel [^\n]*\{/m },
  // The values of several directives accumulate.
  { says: /unknown property 'reload'/, in: /^\s*loadbalance[^]*^\s*loadbalance weighted/m },
  // An empty word is ignored.
  { says: /could not load TLS cert: open : |requires fallthrough/, in: /\{[%$]NOPE/ },
  // CoreDNS itself crashes.
  { says: /^panic: /, in: /./ },
  { says: /error parsing command/, in: /^\s*on / },
  { says: /failed to resolve "0x10"/, in: /forward/ },
];
