import { FLAG, rcodeName } from '../../src/server/wire/iana.ts';
import { readMessage, type DnsRecord, type Message } from '../../src/server/wire/message.ts';
import { printRecord } from '../../src/server/wire/print.ts';
import type { ServeEvent } from './events.ts';

/** The reply that the client in a recorded exchange would have received. */
export interface Expected {
  readonly silent: boolean;
  readonly rcode: number;
  /** Null for a response code without a message. */
  readonly message: Message | null;
}

export function expectedOf(event: ServeEvent): Expected {
  const last = event.replies?.at(-1);
  if (last === undefined || last === null) {
    const rcode = event.error !== undefined && event.rcode === 0 ? 2 : event.rcode;
    return { silent: event.rcode === 0, rcode, message: null };
  }
  const message = readMessage(Buffer.from(last, 'base64'));
  return { silent: false, rcode: message.rcode, message };
}

const flags = [
  ['AA', FLAG.AA],
  ['TC', FLAG.TC],
  ['RA', FLAG.RA],
  ['AD', FLAG.AD],
] as const;

/**
 * The differences between the reply and the expected one, where `null` means silence. Order, IDs and the OPT record
 * itself are ignored.
 */
export function compare(expected: Expected, reply: Message | null): string[] {
  if (reply === null) return expected.silent ? [] : ['silence'];
  if (expected.silent) {
    // CoreDNS sends nothing if no plugin has written a reply, so clients time out.
    const empty = reply.answer.length === 0 && reply.rcode === 0;
    return empty ? [] : [`${rcodeName(reply.rcode)} instead of silence`];
  }
  const differences: string[] = [];
  if (expected.rcode !== reply.rcode)
    differences.push(`${rcodeName(reply.rcode)} instead of ${rcodeName(expected.rcode)}`);
  const { message } = expected;
  if (message === null) return differences;
  for (const [name, flag] of flags)
    if ((message.flags & flag) !== (reply.flags & flag))
      differences.push(`${name} is ${(reply.flags & flag) === 0 ? 'clear' : 'set'}`);
  for (const section of ['answer', 'authority', 'additional'] as const) {
    const theirs = linesOf(message[section]);
    const mine = linesOf(reply[section]);
    if (theirs !== mine)
      differences.push(`${section}: ${mine || 'nothing'} instead of ${theirs || 'nothing'}`);
  }
  const theirs = optionsOf(message);
  const mine = optionsOf(reply);
  if (theirs !== '' && theirs !== mine) differences.push(`options ${mine} instead of ${theirs}`);
  return differences;
}

export function optionsOf({ edns }: Message): string {
  return (edns?.options ?? [])
    .map(({ code, data }) => `${code}=${Buffer.from(data).toString('hex')}`)
    .sort()
    .join();
}

function linesOf(records: readonly DnsRecord[]): string {
  return records
    .map((record) =>
      printRecord(record)
        .replace(/\s+/g, ' ')
        // Signatures include random values and times.
        .replace(/(RRSIG \S+ \d+ \d+ \d+) \d{14} \d{14} (\d+ \S+) \S+/, '$1 TIMES $2 SIGNATURE')
        .replace(/(SOA \S+ hostmaster\.\S+) \d+/, '$1 SERIAL'),
    )
    .sort()
    .join('; ');
}

/** Removes the parts of log lines that differ between runs. */
export function plainLog(lines: readonly string[]): string {
  return lines
    .map((line) =>
      line
        .replace(/^\d+\/\d+\/\d+ [\d:]+ /, '')
        .replace(/ - \d+ /, ' - ID ')
        .replace(/\b(?:\d+\.\d+|0)s\b/g, 'DURATION')
        .replace(/\d\d\/\w+\/\d{4}:[\d:]+ [+-]\d+/g, 'DATE'),
    )
    .join('\n');
}
