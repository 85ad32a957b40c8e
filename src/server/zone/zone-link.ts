/** The link for plugins that answer from zones. */
import { isLater, type Maybe } from '../base/maybe.ts';
import type { Next, WorkerContext } from '../engine/contract/plugin.ts';
import { ReplyCache } from '../engine/contract/reply-cache.ts';
import { ZoneMatch } from '../engine/contract/zone-match.ts';
import { CLASS, EDE, MESSAGE_MAX, OPCODE, RCODE, TYPE } from '../wire/iana.ts';
import { joinAnswers } from '../wire/join.ts';
import type { WireName } from '../wire/name.ts';
import type { Query } from '../transport/query.ts';
import { failure, type Reply } from '../wire/reply.ts';
import { transferSources } from './transfer-source.ts';
import { wildcardNames, wildcardsOf } from './wildcard-names.ts';
import type { ZoneData } from './zone-data.ts';
import { ZoneAnswers } from './zone-answer.ts';
import { zoneTransfers } from './zone-records.ts';
import { ZoneReplica, type ServedZone } from './zone-replica.ts';

export interface ZoneLinkParts {
  readonly plugin: string;
  /** Key of the zones' data set. */
  readonly key: string;
  /** Names in these zones go to the next plugin if they own nothing. */
  readonly fallthrough: readonly string[];
  /** Answers a NOTIFY for a zone (RFC 1996). By default, it is refused. */
  readonly notified?: (query: Query, zone: ServedZone) => Maybe<Reply>;
}

/** Creates the link for a plugin that answers from zones, and offers the zones to the other plugins. */
export function zoneLink(parts: ZoneLinkParts, context: WorkerContext, next: Next): Next {
  const { plugin, key, notified } = parts;
  const { writer, ask, last } = context;
  const replica = context.replica(key, () => new ZoneReplica());
  const { zones } = replica;
  context.offer(transferSources, zoneTransfers(replica));
  context.offer(wildcardNames, wildcardsOf(zones));
  const answers = new ZoneAnswers(writer, plugin);
  const through = new ZoneMatch(parts.fallthrough);
  const replies = new ReplyCache();
  const refused = failure(RCODE.REFUSED, plugin, null, [
    { code: EDE.NOT_AUTHORITATIVE, text: 'no served zone contains the name' },
  ]);
  const failures = {
    absent: failed(plugin, EDE.NOT_READY, 'the zone has not been loaded'),
    expired: failed(plugin, EDE.INVALID_DATA, 'the zone has expired: no primary could be reached'),
  };

  /**
   * Writes as much as the client can receive. If the reply is longer and its question is repeated, the whole reply is
   * built and cached until the zone changes. `loadbalance` can then choose from all addresses.
   */
  const answer = (query: Query, { origin }: ServedZone, data: ZoneData): Reply | null => {
    const passes = through.holds(query);
    const first = answers.answer(query, data, passes, query.limit);
    if (first === null || !first.truncated || query.limit === MESSAGE_MAX) return first;
    // The cache of whole replies does not distinguish queries with and without DNSSEC.
    if (query.dnssecOk) return first;
    const known = replies.get(query);
    if (known !== null) return known;
    if (!replies.wants(query)) return first;
    const whole = answers.answer(query, data, passes);
    if (whole === null || whole.bare || answers.onward !== null) return first;
    return replies.offer(query, whole, {
      get version() {
        return zones.find(origin, origin.length)?.data === data ? 0 : 1;
      },
    });
  };

  return (query) => {
    const { type } = query;
    let zone = zones.find(query.folded, query.nameLength);
    if (zone === null || (query.class !== CLASS.IN && query.class !== CLASS.ANY))
      return last ? refused : next(query);
    if (query.opcode === OPCODE.NOTIFY) return notified?.(query, zone) ?? refused;
    // Transfers are handled by `transfer`, which comes earlier.
    if (type === TYPE.AXFR || type === TYPE.IXFR) return refused;
    // The parent has the DS records (RFC 4035 section 3.1.4.1).
    if (type === TYPE.DS && zone.origin.length === query.nameLength)
      zone = zones.find(query.folded, query.nameLength, true) ?? zone;
    if (zone.data === null) return failures.absent;
    if (zone.expired) return failures.expired;
    const reply = answer(query, zone, zone.data);
    if (reply === null) return next(query);
    return answers.onward === null ? reply : goOn(query, reply, answers.onward, ask);
  };
}

function failed(plugin: string, code: number, text: string): Reply {
  return failure(RCODE.SERVFAIL, plugin, null, [{ code, text }]);
}

/** Continues with an alias into another zone. The whole server resolves its target. */
function goOn(query: Query, first: Reply, target: WireName, ask: Next): Maybe<Reply> {
  const asked = query.asking(target);
  asked.depth = query.depth + 1;
  const rest = ask(asked);
  return isLater(rest) ? rest.then((late) => joined(first, late)) : joined(first, rest);
}

/** If a server refuses or fails, the answer is only the alias. */
function joined(first: Reply, rest: Reply): Reply {
  const { rcode } = rest;
  const says = rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN || rcode === RCODE.SERVFAIL;
  return says ? joinAnswers(first, rest) : first;
}
