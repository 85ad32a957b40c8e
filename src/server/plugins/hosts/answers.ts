/** Answers from a hosts table. */
import type { Maybe } from '../../base/maybe.ts';
import type { Next } from '../../engine/contract/plugin.ts';
import type { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { EDE, FLAG, isAddressType, MESSAGE_MAX, RCODE, TYPE } from '../../wire/iana.ts';
import { NAME_MAX, nameLength } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import { SECTION, type MessageWriter } from '../../wire/writer.ts';
import { HostsBuilder } from './builder.ts';
import { HostsLookup } from './hosts-table.ts';

export interface AnswerParts {
  readonly here: ZoneMatch;
  readonly through: ZoneMatch | null;
  readonly next: Next;
  /** `fallthrough_unsupported`. */
  readonly unsupported: boolean;
}

export interface HostsAnswerer {
  readonly link: Next;
  use(table: HostsLookup): void;
}

/**
 * Maximum number of cached replies; when it is reached, all of them are dropped. It is many times the number of host
 * names in a cluster.
 */
const REPLIES_MAX = 4096;

/** Another record fits below this many bytes. */
const WHOLE = MESSAGE_MAX - NAME_MAX - 12;

const unknown = failure(RCODE.SERVFAIL, 'hosts', null, [
  { code: EDE.OTHER, text: 'the hosts file does not contain this name' },
]);

/**
 * Answers A, AAAA and PTR from a table. Whether a name exists is decided once for all types: a name with an address
 * exists, but has no records of other types.
 */
export function answerer(
  writer: MessageWriter,
  ttl: number,
  { here, through, next, unsupported }: AnswerParts,
): HostsAnswerer {
  let table = new HostsLookup(new HostsBuilder().build());
  /**
   * Indexed by entry and type: 0 A, 1 AAAA, 2 PTR. Wildcards are not cached, because the questions they match vary in
   * length.
   */
  const known = new Map<number, Reply>();

  /** Writes records until the reply has `most` bytes. */
  const write = (query: Query, most: number): Reply => {
    const { data } = table;
    const full = (): boolean => {
      if (writer.length < most) return false;
      writer.cut();
      return true;
    };
    writer.reply(query, FLAG.AA);
    if (query.type === TYPE.A) {
      for (let i = 0; i < table.v4Count && !full(); i++) {
        writer.record(SECTION.answer, null, TYPE.A, ttl, data, table.v4At + 4 * i, 4);
      }
    } else if (query.type === TYPE.AAAA) {
      for (let i = 0; i < table.v6Count && !full(); i++) {
        writer.record(SECTION.answer, null, TYPE.AAAA, ttl, data, table.v6At + 16 * i, 16);
      }
    } else if (query.type === TYPE.PTR) {
      for (let i = 0, at = table.pointersAt; i < table.pointerCount && !full(); i++) {
        const length = nameLength(data, at);
        writer.named(SECTION.answer, null, TYPE.PTR, ttl, data.subarray(at, at + length));
        at += length;
      }
    }
    return writer.finish(RCODE.NOERROR, 'hosts');
  };

  const slotOf = (query: Query): number => {
    const { type } = query;
    if (table.wild || !query.isStandard) return -1;
    if (type === TYPE.A) return 0;
    if (type === TYPE.AAAA) return 1;
    return type === TYPE.PTR ? 2 : -1;
  };

  const found = (query: Query): Reply => {
    const slot = slotOf(query);
    if (slot < 0) return write(query, Math.min(query.limit, WHOLE));
    const key = 3 * table.entry + slot;
    let reply = known.get(key);
    if (reply === undefined) {
      if (known.size >= REPLIES_MAX) known.clear();
      reply = write(query, WHOLE).own();
      known.set(key, reply);
    }
    return reply;
  };

  const link = (query: Query): Maybe<Reply> => {
    const { type } = query;
    const inZone = here.holds(query);
    // Reverse zones need not be listed, because PTR queries for addresses in the file are always answered.
    if (!inZone && type !== TYPE.PTR) return next(query);
    const exists = table.find(query);
    if (type === TYPE.PTR) {
      return exists && (inZone || table.pointerCount > 0) ? found(query) : next(query);
    }
    const supported = isAddressType(type);
    if (exists && (supported || !unsupported || through?.holds(query) !== true))
      return found(query);
    return through?.holds(query) === true ? next(query) : unknown;
  };

  return {
    link,
    use(replacement) {
      table = replacement;
      known.clear();
    },
  };
}
