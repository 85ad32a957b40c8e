/**
 * The rules that the models follow, by name. Sentences in traces cite them (`[glibc-next]`). docs/resolvers.md lists
 * them with the scenarios in which each was measured, and a test checks that both agree.
 */
export const rules = {
  'as-is': 'A name that ends in a dot, or has at least ndots dots, is tried as written first.',
  search: 'A name with fewer than ndots dots is tried with each search domain, then as written.',
  'hosts-file': 'The hosts file is read first, and a match ends the lookup.',
  'glibc-pair': 'A and AAAA are sent together from one socket, and glibc waits for both answers.',
  'glibc-stop': 'An address in either family ends the walk; the other family is not queried again.',
  'glibc-next': 'After any mix of NXDOMAIN, NODATA and SERVFAIL, glibc tries the next name.',
  'glibc-cname':
    'A CNAME without an address counts as an answer and ends the walk without a result.',
  'glibc-jump':
    'After REFUSED, NOTIMP, a lame answer or no reply, glibc skips to the name as written.',
  'glibc-refused': 'If no server can be reached at all, the lookup ends.',
  'glibc-formerr': 'FORMERR is final for a name.',
  'glibc-retry':
    'After SERVFAIL, REFUSED or NOTIMP, glibc tries the next server at once, twice in all.',
  'glibc-half':
    'After one of two answers, glibc retries in sequence, then from separate sockets, then settles for one.',
  'glibc-tcp': 'If either answer is truncated, both queries are repeated over one TCP connection.',
  'glibc-buffer': 'If the addresses do not fit into 1024 bytes, the whole lookup is repeated.',
  'musl-all': 'Each query goes to all servers at once, and the first NOERROR or NXDOMAIN counts.',
  'musl-next':
    'NXDOMAIN in either family means that the name does not exist, even if the other has an address.',
  'musl-stop': 'An address, or NODATA in both families, ends the walk.',
  'musl-fail': 'If a family has no usable answer, the whole lookup fails.',
  'musl-servfail': 'After SERVFAIL, musl retries at once, twice for each question and interval.',
  'musl-ignore': 'REFUSED, NOTIMP and FORMERR are ignored, and musl keeps waiting.',
  'musl-tcp': 'Up to 1.2.3, truncated answers are used; later versions retry over TCP.',
  'go-sockets': 'Each query and each attempt uses its own socket, with both families in parallel.',
  'go-next': 'After any result other than an address, Go tries the next name.',
  'go-stop': 'An address in either family ends the walk.',
  'go-retry':
    'After an error reply or a timeout, Go tries the next server, for as many rounds as attempts.',
  'cares-next': 'After NXDOMAIN or NODATA, c-ares tries the next name.',
  'cares-stop': 'An address in either family ends the walk.',
  'cares-fail': 'Any other failure ends the lookup.',
  'cares-retry':
    'Error replies and timeouts are retried in 4 rounds (1.18), or in 3 with growing timeouts (1.34).',
} as const;

export type ResolverRule = keyof typeof rules;

/** Formats a rule the way traces cite it. */
export function cite(rule: ResolverRule): string {
  return `[${rule}]`;
}
