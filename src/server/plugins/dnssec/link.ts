/** The link in the chain that signs replies. */
import type { Clock } from '../../base/clock.ts';
import { andThen, isLater, Later, type Maybe } from '../../base/maybe.ts';
import type { KeyPair } from '../../dnssec/key-pair.ts';
import type { Next } from '../../engine/contract/plugin.ts';
import { EDE, FLAG, HEADER, RCODE, TYPE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import { SECTION, type MessageWriter } from '../../wire/writer.ts';
import { assemble } from './assembly.ts';
import type { DnssecMetrics } from './dnssec-counters.ts';
import { Judgement, tellsOfCut, type Plan } from './signing-plan.ts';
import { renewalOf, wanted, type Signatures, type Signed } from './signatures.ts';
import type { SignedReplies } from './signed-replies.ts';
import type { SignedZones } from './zones.ts';

export interface DnssecLinkParts {
  readonly zones: SignedZones;
  readonly pairs: readonly KeyPair[];
  readonly signatures: Signatures;
  readonly replies: SignedReplies;
  readonly metrics: DnssecMetrics;
  readonly clock: Clock;
  readonly writer: MessageWriter;
  readonly next: Next;
  /** Called when a query is refused because too many signatures are in progress. */
  readonly onRefused: () => void;
}

interface SigningWork {
  readonly reply: Reply;
  readonly query: Query;
  readonly plan: Plan;
  /** Indexed like the plan's sets; null for signatures that have not been made yet. */
  readonly signed: (Signed | null)[];
  /** True if the result may be cached, because the same reply leads to the same plan and its signatures existed. */
  readonly lasting: boolean;
}

/** Signs replies within the directive's zones for clients that request it (DO). */
export class DnssecLink {
  readonly #parts: DnssecLinkParts;
  readonly #next: Next;

  constructor(parts: DnssecLinkParts) {
    this.#parts = parts;
    this.#next = parts.next;
  }

  readonly link: Next = (query) => {
    if (!query.isStandard || query.nameLength === 0) return this.#next(query);
    const zone = this.#parts.zones.find(query.folded, query.nameLength);
    if (zone === null) return this.#next(query);
    const { type } = query;
    if (type === TYPE.DNSKEY && zone.length === query.nameLength) {
      const reply = this.#keys(query);
      return query.dnssecOk ? this.#sign(reply, query) : reply;
    }
    if (!query.dnssecOk || type === TYPE.AXFR || type === TYPE.IXFR) return this.#next(query);
    const reply = this.#next(query);
    return isLater(reply) ? andThen(reply, this.#sign, query.keep()) : this.#sign(reply, query);
  };

  /** Returns the reply to `query` in signed form. */
  readonly #sign = (reply: Reply, query: Query): Maybe<Reply> => {
    const { replies, metrics, clock } = this.#parts;
    if (reply.bare || reply.truncated || reply.rest !== null) return reply;
    const known = replies.find(query, reply, Math.floor(clock.wall() / 1000));
    if (known === null) return this.#signAnew(reply, query);
    metrics.of(query.route).hits.add(known.sets);
    if (reply.options === null && reply.errors === null) return known.reply;
    return known.reply.with({ options: reply.options, errors: reply.errors });
  };

  #signAnew(reply: Reply, query: Query): Maybe<Reply> {
    if (!isSignable(reply)) return reply;
    const judgement = new Judgement(reply, query, this.#parts.zones);
    if (!judgement.asksForCut) return this.#carryOut(reply, query, judgement.plan(false), true);
    // Whether the name in a DS denial is a zone.
    const { name } = judgement.denied!;
    const kept = query.keep();
    return andThen(this.#next(query.asking(name, TYPE.NS)), (servers) =>
      this.#carryOut(reply, kept, judgement.plan(tellsOfCut(servers, name)), false),
    );
  }

  #carryOut(reply: Reply, query: Query, plan: Plan, lasting: boolean): Maybe<Reply> {
    if (plan.sets.length === 0) return reply;
    const { signatures, zones, metrics } = this.#parts;
    const counters = metrics.of(query.route);
    const all = plan.sets.map((set) => wanted(set, zones.signerOf(set.owner, set.type)!));
    const signed = all.map((what) => signatures.find(what));
    const missing = all.filter((_, at) => signed[at] === null);
    counters.hits.add(signed.length - missing.length);
    counters.misses.add(missing.length);
    if (missing.length === 0) return this.#finish({ reply, query, plan, signed, lasting });
    if (!query.mayWait || !signatures.takes(missing)) {
      counters.refused.add(1);
      this.#parts.onRefused();
      return crowded;
    }
    // A flood of random names must not fill the store, so only queries that are repeated get stored.
    const work = { reply, query: query.keep(), plan, signed, lasting: false };
    const later = new Later<Reply>();
    let left = missing.length;
    for (const [at, what] of all.entries()) {
      if (signed[at] !== null) continue;
      signatures.make(what, (error, made) => {
        if (left <= 0) return;
        signed[at] = made;
        left = made === null ? 0 : left - 1;
        if (left > 0) return;
        later.resolve(made === null ? unsigned(error) : this.#finish(work));
      });
    }
    return later;
  }

  #finish({ reply, query, plan, signed, lasting }: SigningWork): Reply {
    const { replies, signatures, metrics, clock } = this.#parts;
    const all = signed as readonly Signed[];
    const made = assemble(reply, plan, all);
    const from = Math.max(...all.map(({ inception }) => inception));
    const until = Math.min(...all.map(renewalOf));
    if (lasting && until > clock.wall() / 1000)
      replies.put(query, reply, { reply: plain(made), sets: all.length, from, until });
    metrics.show(metrics.of(query.route), signatures.size, replies.bytes);
    return made;
  }

  #keys(query: Query): Reply {
    const { writer, pairs } = this.#parts;
    writer.reply(query, FLAG.AA);
    for (const { data, ttl } of pairs) writer.record(SECTION.answer, null, TYPE.DNSKEY, ttl, data);
    return writer.finish(RCODE.NOERROR, 'dnssec');
  }
}

/** True if a reply includes its question and something that can be signed, as nearly all do. */
function isSignable({ rcode, bytes, start }: Reply): boolean {
  if (bytes[start + HEADER.QDCOUNT] !== 0 || bytes[start + HEADER.QDCOUNT + 1] !== 1) return false;
  return rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN || rcode === RCODE.YXDOMAIN;
}

function plain(reply: Reply): Reply {
  if (reply.options === null && reply.errors === null && reply.cause === null) return reply;
  return reply.with({ options: null, errors: null, cause: null });
}

/** Returns SERVFAIL, because a reply with missing signatures would be rejected as forged. */
function unsigned(error: unknown): Reply {
  return failure(RCODE.SERVFAIL, 'dnssec', error as Error);
}

/** There is no cause, because `errors` would log a line for each query. */
const crowded: Reply = failure(RCODE.REFUSED, 'dnssec', null, [
  { code: EDE.OTHER, text: 'too many RRsets are being signed' },
]);
