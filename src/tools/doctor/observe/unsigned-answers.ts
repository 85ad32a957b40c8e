/**
 * Zones that have to be signed, because their parent has a DS record (RFC 4034, section 5). Also answers without a
 * signature to queries that asked for one (DO, RFC 3225).
 */
import { FLAG, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { Records } from '../../../server/wire/records.ts';
import { SECTION } from '../../../server/wire/writer.ts';
import { type SeenExchange, finalServer, isLost } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';
import { parentOf } from './domain-of-name.ts';

const ZONES_MAX = 500;
const NAMES_MAX = 2000;
const SERVERS_MAX = 16;

/** A zone that has to be signed, because a server returned a DS record for it. */
export interface SecureZone {
  readonly zone: string;
  readonly servers: Set<string>;
}

/** A server's answers for one name to queries with DO. */
export interface AnswersWithDo {
  readonly name: string;
  readonly server: string;
  /** True if the server has the zone itself, and did not get the answer from another server. */
  isAuthoritative: boolean;
  signed: number;
  unsigned: number;
  withoutKey: number;
}

const records = new Records();

export class UnsignedAnswers {
  readonly zones: BoundedMap<string, SecureZone> = new BoundedMap(ZONES_MAX);
  readonly answers: BoundedMap<string, AnswersWithDo> = new BoundedMap(NAMES_MAX);

  add(exchange: SeenExchange): void {
    const { name, type, rcode, reply, replyFlags, udpSize } = exchange;
    if (udpSize === 0 || isLost(exchange) || reply === null || rcode !== RCODE.NOERROR) return;
    if ((replyFlags & FLAG.TC) !== 0 || reply.length < exchange.replyBytes) return;
    const server = finalServer(exchange).address;
    if (type === TYPE.DS) {
      if (!hasAnswer(reply, TYPE.DS)) return;
      const zone = this.zones.at(name, () => ({ zone: name, servers: new Set() }));
      if (zone !== null && zone.servers.size < SERVERS_MAX) zone.servers.add(server);
      return;
    }
    if (exchange.answers === 0 && type !== TYPE.DNSKEY) return;
    if (!wantsSignatures(exchange.query)) return;
    const isSigned = hasAnswer(reply, TYPE.RRSIG);
    const entry = this.answers.at(`${server} ${name}`, () => ({
      ...{ name, server, isAuthoritative: false },
      ...{ signed: 0, unsigned: 0, withoutKey: 0 },
    }));
    if (entry === null) return;
    if ((replyFlags & FLAG.AA) !== 0) entry.isAuthoritative = true;
    if (isSigned) entry.signed++;
    else if (exchange.answers > 0) entry.unsigned++;
    else entry.withoutKey++;
  }

  /** The closest zone of the name that has to be signed; null if the capture shows none. */
  zoneOf(name: string): SecureZone | null {
    for (let zone = name; zone.includes('.'); zone = parentOf(zone)) {
      const found = this.zones.get(zone);
      if (found !== undefined) return found;
    }
    return null;
  }
}

/** True if the query's OPT record has the DO bit (RFC 6891, section 6.1.4). */
function wantsSignatures(query: Uint8Array): boolean {
  for (records.over(query); records.next();)
    if (records.type === TYPE.OPT) return (query[records.ttlAt + 2]! & 0x80) !== 0;
  return false;
}

function hasAnswer(reply: Uint8Array, type: number): boolean {
  for (records.over(reply); records.next() && records.section === SECTION.answer;)
    if (records.type === type) return true;
  return false;
}
