/**
 * Interprets replies like glibc, and the results of nsswitch.conf services like getaddrinfo. This covers results,
 * errors, and the buffer space for addresses.
 */
import { parseAddress } from '../../server/base/ip.ts';
import { failed, type LookupOutcome } from './client.ts';
import type { GlibcReplies } from './glibc-send.ts';
import type { Status } from './nsswitch.ts';
import { addressesIn, hasCname, sameName, type ClientReply } from './reply.ts';
import { cite } from './resolver-rules.ts';
import { isSendable } from './search-list.ts';

/** INTERNAL is NETDB_INTERNAL, which means that the service itself failed rather than DNS. */
export type HErrno = 'HOST_NOT_FOUND' | 'NO_DATA' | 'TRY_AGAIN' | 'NO_RECOVERY' | 'INTERNAL';

export interface NssVerdict {
  readonly status: Status;
  readonly herrno: HErrno;
  readonly addresses: readonly string[];
}

export type Walked =
  | { readonly ok: true; readonly replies: readonly ClientReply[]; readonly late: boolean }
  | { readonly ok: false; readonly herrno: HErrno; readonly errno: string };

/** With the texts from gai_strerror. */
export const errors: Readonly<
  Record<'NONAME' | 'AGAIN' | 'NODATA' | 'SYSTEM' | 'ADDRFAMILY', LookupOutcome>
> = {
  NONAME: failed('EAI_NONAME', -2, 'Name or service not known'),
  AGAIN: failed('EAI_AGAIN', -3, 'Temporary failure in name resolution'),
  NODATA: failed('EAI_NODATA', -5, 'No address associated with hostname'),
  SYSTEM: failed('EAI_SYSTEM', -11, 'System error'),
  ADDRFAMILY: failed('EAI_ADDRFAMILY', -9, 'Address family for hostname not supported'),
};

/** Decides what a name's replies mean for the search. */
export function judge(sent: GlibcReplies & { ok: true }): Walked {
  const replies = [sent.first, sent.second].filter((reply) => reply !== null);
  if (replies.some((reply) => reply.rcode === 'NOERROR' && reply.answer.length > 0)) {
    return { ok: true, replies, late: sent.late };
  }
  const [first, second = first] = replies;
  const rcode = first?.rcode === 'NOERROR' ? second?.rcode : first?.rcode;
  if (rcode === 'NXDOMAIN') return { ok: false, herrno: 'HOST_NOT_FOUND', errno: '' };
  if (rcode === 'SERVFAIL') return { ok: false, herrno: 'TRY_AGAIN', errno: '' };
  return { ok: false, herrno: rcode === 'NOERROR' ? 'NO_DATA' : 'NO_RECOVERY', errno: '' };
}

/** Explains what a name's result means for the search, citing the rule. */
export function explain(result: Walked, rcode: string): string {
  if (result.ok) {
    return result.replies.some((reply) => usableAddresses(reply).length > 0)
      ? `An address was found, so the walk ends here. ${cite('glibc-stop')}`
      : `A CNAME without an address: glibc treats that as an answer, so it stops without a result. ${cite('glibc-cname')}`;
  }
  if (result.errno === 'ECONNREFUSED')
    return `No server can be reached. Each is tried as often as attempts says, and then the lookup ends. ${cite('glibc-refused')}`;
  if (result.herrno === 'HOST_NOT_FOUND' || result.herrno === 'NO_DATA') {
    return `Nothing was found, so the next name is tried, if there is one. ${cite('glibc-next')}`;
  }
  if (rcode === 'SERVFAIL')
    return `The server failed twice, so the next name is tried. ${cite('glibc-next')}`;
  if (result.herrno === 'NO_RECOVERY')
    return `glibc does not retry after this error. ${cite('glibc-formerr')}`;
  return `No usable answer: the rest of the search list is skipped. ${cite('glibc-jump')}`;
}

export const unavailable: NssVerdict = { status: 'unavail', herrno: 'INTERNAL', addresses: [] };
export const notFound: NssVerdict = { status: 'notfound', herrno: 'HOST_NOT_FOUND', addresses: [] };

/** Combines the results for IPv6 and for IPv4 in mapped form. One success is enough. */
export function joined(six: NssVerdict, four: NssVerdict): NssVerdict {
  if (six.status === 'success' || four.status === 'success') return success(six.addresses);
  const status =
    six.status === 'tryagain'
      ? 'tryagain'
      : four.status === 'unavail' && six.status !== 'unavail'
        ? six.status
        : four.status;
  const known = (verdict: NssVerdict): boolean =>
    verdict.herrno === 'TRY_AGAIN' || verdict.herrno === 'NO_DATA';
  const again = six.herrno === 'TRY_AGAIN' && four.herrno === 'TRY_AGAIN';
  const nothing: HErrno = known(six) && known(four) ? 'NO_DATA' : 'HOST_NOT_FOUND';
  const herrno = four.herrno === 'INTERNAL' ? 'INTERNAL' : again ? 'TRY_AGAIN' : nothing;
  return { status, herrno, addresses: [] };
}

export function success(addresses: readonly string[]): NssVerdict {
  return { status: 'success', herrno: 'HOST_NOT_FOUND', addresses };
}

/** Returns the valid addresses in a reply, which must belong to the name that the CNAMEs before them lead to. */
function usableAddresses(reply: ClientReply): string[] {
  let expected = reply.name;
  const addresses: string[] = [];
  for (const record of reply.answer) {
    if (record.type === 'CNAME') expected = record.data;
    else if (record.type !== reply.type || !sameName(record.name, expected)) continue;
    // A non-ASCII search domain is sent, but names found under it are not valid host names.
    else if (isHostName(record.name)) addresses.push(record.data);
  }
  return addresses;
}

/**
 * A name's result for both address families.
 * @param newAnswers see `GlibcTraits`
 */
export function mergePair(walked: Walked & { ok: true }, newAnswers: boolean): NssVerdict {
  const addresses = walked.replies.flatMap(newAnswers ? usableAddresses : addressesIn);
  if (addresses.length > 0) return success(addresses);
  // A missing reply is treated like an unreadable message, so the service is "unavailable" and the name is not "not
  // found".
  return walked.late ? { status: 'unavail', herrno: 'NO_RECOVERY', addresses: [] } : notFound;
}

/** A name's result for one address family. */
export function judgeSingle(walked: Walked & { ok: true }, newAnswers: boolean): NssVerdict {
  const addresses = walked.replies.flatMap(usableAddresses);
  if (addresses.length > 0) return success(addresses);
  if (!newAnswers) return { status: 'notfound', herrno: 'NO_RECOVERY', addresses: [] };
  return { status: 'tryagain', herrno: 'NO_RECOVERY', addresses: [] };
}

/**
 * The buffer space in bytes for getaddrinfo's result for both families, which is 40 per address plus the canonical name
 * once.
 */
export function pairBytes(count: number, typed: string, walked: Walked & { ok: true }): number {
  const name = canonicalName(typed, walked).length + 1;
  return 40 * count + (count > 1 ? Math.ceil(name / 8) * 8 : name);
}

/** The buffer space in bytes for one family, with names, addresses at multiples of four, and two lists of pointers. */
export function singleBytes(
  addresses: readonly string[],
  typed: string,
  walked: Walked & { ok: true },
): number {
  const size = parseAddress(addresses[0] ?? '')?.length ?? 4;
  const aliases = 1 + walked.replies.reduce((sum, reply) => sum + (hasCname(reply) ? 1 : 0), 0);
  const names = canonicalName(typed, walked).length + 1 + (aliases > 1 ? typed.length + 1 : 0);
  const data = Math.ceil(names / 4) * 4 + size * addresses.length;
  return Math.ceil(data / 8) * 8 + 8 * (addresses.length + 1) + 8 * aliases;
}

function canonicalName(typed: string, walked: Walked & { ok: true }): string {
  const reply = walked.replies.find((one) => one.answer.length > 0);
  const target = reply?.answer.findLast((record) => record.type === 'CNAME')?.data;
  return (target ?? reply?.name ?? typed).replace(/\.$/, '');
}

/** getaddrinfo's error for the last service's result, for both families or for IPv6 alone. */
export function verdictError(verdict: NssVerdict): LookupOutcome {
  if (verdict.herrno === 'INTERNAL') return errors.SYSTEM;
  if (verdict.herrno === 'TRY_AGAIN') return errors.AGAIN;
  return verdict.herrno === 'NO_DATA' ? errors.NODATA : errors.NONAME;
}

/** The same for IPv4 alone, which uses gethostbyname2 and maps errors differently. */
export function simpleError({ status, herrno }: NssVerdict, newAnswers: boolean): LookupOutcome {
  if (status === 'tryagain') return herrno === 'TRY_AGAIN' ? errors.AGAIN : errors.NODATA;
  if (status === 'unavail' && herrno === 'TRY_AGAIN') return errors.AGAIN;
  if (status === 'unavail' && herrno === 'HOST_NOT_FOUND' && !newAnswers) return errors.NODATA;
  return herrno === 'NO_DATA' ? errors.NODATA : errors.NONAME;
}

/**
 * True if every label consists of 1 to 63 letters, digits, `-` and `_`. Otherwise, glibc rejects the name without a
 * query.
 */
export function isHostName(name: string): boolean {
  if (name === '.') return true;
  return /^(?!-)[A-Za-z0-9_.-]+$/.test(name) && isSendable(name);
}
