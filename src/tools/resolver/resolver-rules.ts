/**
 * The rules that the models follow, by name. The sentences of a trace cite them (`[glibc-next]`).
 * docs/resolvers.md lists them with the scenarios in which each was measured; a test enforces that they
 * agree.
 */
export const rules = {
  'as-is': 'A name with a final dot, or with at least ndots dots, is tried as written first.',
  search: 'A name with fewer dots than ndots is tried with each search domain, then as written.',
  'hosts-file': 'The hosts file comes first and ends the lookup.',
  'glibc-pair': 'A and AAAA leave together from one socket; glibc waits for both answers.',
  'glibc-stop': 'An address in either family ends the walk; the other family is not queried again.',
  'glibc-next': 'NXDOMAIN, NODATA and SERVFAIL, in any mixture, continue with the next name.',
  'glibc-cname':
    'A CNAME without an address counts as an answer and ends the walk without a result.',
  'glibc-jump':
    'REFUSED, NOTIMP, a lame answer or silence leaves the search list: the name as written follows at once.',
  'glibc-refused': 'If no server can be reached at all, the lookup ends.',
  'glibc-formerr': 'FORMERR is final for a name.',
  'glibc-retry':
    'SERVFAIL, REFUSED and NOTIMP move to the next server or attempt at once; two attempts.',
  'glibc-half':
    'After half an answer: one after the other, then from separate sockets, then the result so far.',
  'glibc-tcp': 'One truncated answer sends both questions again over one TCP connection.',
  'glibc-buffer': 'More addresses than fit into 1024 bytes repeat the whole lookup.',
  'musl-all': 'Every server gets every query at once; the first NOERROR or NXDOMAIN counts.',
  'musl-next': 'NXDOMAIN in either family makes the name missing, even beside an address.',
  'musl-stop': 'An address, or NODATA in both families, ends the walk.',
  'musl-fail': 'A family without a usable answer fails the whole lookup.',
  'musl-servfail': 'SERVFAIL is sent again at once, twice for each question and interval.',
  'musl-ignore': 'REFUSED, NOTIMP and FORMERR are ignored, and musl keeps waiting.',
  'musl-tcp':
    'Truncation: 1.2.3 uses the truncated answer, later versions repeat the query over TCP.',
  'go-sockets':
    'Each query and each attempt has a separate socket; both families at the same time.',
  'go-next': 'Any result other than an address continues with the next name.',
  'go-stop': 'An address in either family ends the walk.',
  'go-retry': 'Error replies and silence move to the next server, attempts times round.',
  'cares-next': 'NXDOMAIN and NODATA continue with the next name.',
  'cares-stop': 'An address in either family ends the walk.',
  'cares-fail': 'Any other failure ends the lookup.',
  'cares-retry':
    'Error replies and silence are tried again: 4 rounds (1.18), 3 with growing times (1.34).',
} as const;

export type ResolverRule = keyof typeof rules;

/** The form in which a trace cites a rule. */
export function cite(rule: ResolverRule): string {
  return `[${rule}]`;
}
