/** Answers to queries with CD (checking disabled, RFC 4035 section 3.2.2), and the times of their signatures. */
import { FLAG, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { Records } from '../../../server/wire/records.ts';
import { SECTION } from '../../../server/wire/writer.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';
import { RRSIG } from '../thresholds/errors.ts';

const NAMES_MAX = 500;
const HOSTS_MAX = 16;

export interface UncheckedAnswer {
  readonly name: string;
  readonly server: string;
  /** The first addresses that sent or passed on such an answer, or got it. */
  readonly hosts: Set<string>;
  count: number;
  /** Of the last one, milliseconds since 1970. */
  atMs: number;
  /** Of its last signature, milliseconds since 1970; 0: it came without one. */
  inceptionMs: number;
  expirationMs: number;
}

const records = new Records();

export class UncheckedAnswers {
  readonly names: BoundedMap<string, UncheckedAnswer> = new BoundedMap(NAMES_MAX);

  add(exchange: SeenExchange): void {
    const { replyFlags, rcode, answers, reply, name } = exchange;
    if ((replyFlags & FLAG.CD) === 0 || rcode !== RCODE.NOERROR || answers === 0) return;
    if (isLost(exchange) || reply === null) return;
    // The zone’s own servers do not validate, and a resolver queries them without RD.
    if ((replyFlags & FLAG.RD) === 0) return;
    const server = exchange.server.address;
    const entry = this.names.at(name, () => ({
      ...{
        name,
        server,
        hosts: new Set<string>(),
        count: 0,
        atMs: 0,
        inceptionMs: 0,
        expirationMs: 0,
      },
    }));
    if (entry === null) return;
    entry.count++;
    for (const { address } of hostsOf(exchange))
      if (entry.hosts.size < HOSTS_MAX) entry.hosts.add(address);
    entry.atMs = exchange.repliedMs ?? exchange.sentMs;
    const view = new DataView(reply.buffer, reply.byteOffset, reply.byteLength);
    for (records.over(reply); records.next() && records.section === SECTION.answer;) {
      if (records.type !== TYPE.RRSIG || records.dataLength < RRSIG.leastBytes) continue;
      entry.expirationMs = 1000 * view.getUint32(records.dataAt + RRSIG.expirationAt);
      entry.inceptionMs = 1000 * view.getUint32(records.dataAt + RRSIG.inceptionAt);
    }
  }
}

function hostsOf({ client, server, hops }: SeenExchange): readonly { readonly address: string }[] {
  return [client, server, ...hops.flatMap((hop) => [hop.client, hop.server])];
}
