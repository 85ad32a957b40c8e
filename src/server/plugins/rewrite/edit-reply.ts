/** Turns replies to rewritten queries back into replies to the client's question. */
import { andThen, type Maybe } from '../../base/maybe.ts';
import { endlessAliases, isEndless } from '../../engine/contract/lookup-bounds.ts';
import { FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { NameError, parseNameOrNull } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { Records } from '../../wire/records.ts';
import { withQuestion } from '../../wire/requestion.ts';
import { failure, Reply, silence } from '../../wire/reply.ts';
import { replySlab } from '../../wire/slab.ts';
import { MessageFull, SECTION, type MessageWriter } from '../../wire/writer.ts';
import { hasValue, looseRecords, writeLoose, type LooseRecord } from './loose-records.ts';
import type { ReplyRule } from './rule.ts';

export interface EditParts {
  /** The query as the client sent it, which has the question that the reply needs. */
  readonly query: Query;
  readonly asked: Query;
  readonly writer: MessageWriter;
  /** Looks up a different name. Returns null if there is no reply. */
  readonly lookup: (name: string) => Maybe<Reply | null>;
}

/**
 * Returns the reply with the client's question and with the rules applied, starting with the last one. Replies are
 * shared, so any change creates a new reply.
 */
export function editReply(
  reply: Reply,
  rules: readonly ReplyRule[],
  parts: EditParts,
): Maybe<Reply> {
  const backwards = rules.toReversed();
  const names = backwards.some(
    ({ kind }) => kind === 'owner' || kind === 'value' || kind === 'target',
  );
  const ttls = backwards.some(({ kind }) => kind === 'ttl');
  if (!reply.bare && names) return rewritten(reply, backwards, parts);
  const restored = withQuestion(reply, parts.query, 'stay');
  return withRcode(ttls && !reply.bare ? withTtls(restored, backwards) : restored, backwards);
}

function withRcode(reply: Reply, rules: readonly ReplyRule[]): Reply {
  const rcode = rcodeAfter(reply.rcode, rules);
  return rcode === reply.rcode
    ? reply
    : copyOf(reply, rcode, reply.bytes, reply.start, reply.end, true);
}

function rcodeAfter(rcode: number, rules: readonly ReplyRule[]): number {
  for (const rule of rules) if (rule.kind === 'rcode' && rule.from === rcode) rcode = rule.to;
  return rcode;
}

function ttlAfter(ttl: number, rules: readonly ReplyRule[]): number {
  for (const rule of rules)
    if (rule.kind === 'ttl') ttl = Math.max(rule.least, Math.min(rule.most, ttl));
  return ttl;
}

const records = new Records();

/** Returns a copy of the reply with different TTLs. */
function withTtls(reply: Reply, rules: readonly ReplyRule[]): Reply {
  const start = replySlab.put(reply.bytes, reply.start, reply.end);
  const { bytes } = replySlab;
  for (records.of(reply); records.next();) {
    const ttl = ttlAfter(records.ttl, rules);
    const at = records.ttlAt - reply.start + start;
    for (let byte = 0; byte < 4; byte++) bytes[at + byte] = ttl >>> (24 - 8 * byte);
  }
  return copyOf(reply, reply.rcode, bytes, start, start + reply.size, false);
}

function rewritten(reply: Reply, rules: readonly ReplyRule[], parts: EditParts): Maybe<Reply> {
  const loose = looseRecords(reply);
  const byTurn = [SECTION.authority, SECTION.answer, SECTION.additional].flatMap((section) =>
    loose.filter((record) => record.section === section),
  );
  let cut: LooseRecord | null = null;
  let target = '';
  for (const record of byTurn) {
    for (const rule of rules) {
      const change = changeRecord(record, rule, cut === null);
      if (change === null) continue;
      cut = record;
      target = change;
    }
  }
  if (cut === null) return written(reply, loose, rules, parts, reply.truncated);
  const goOn = (found: Reply | null): Maybe<Reply> => {
    // If its new end cannot be resolved, the chain stays unchanged.
    if (found === null)
      return editReply(reply, rules.filter(({ kind }) => kind !== 'target').toReversed(), parts);
    if (isEndless(found)) return endless(found, target);
    return written(reply, chainTo(cut, loose, found), rules, parts, found.truncated);
  };
  const found = parts.lookup(target);
  return andThen(found, goOn);
}

/** An endless chain is an error. Only the lookup that detected it reports it, and earlier ones just pass it on. */
function endless(found: Reply, target: string): Reply {
  const why =
    found === endlessAliases
      ? new Error(`the CNAME to ${target} created by a rule: ${found.cause?.message}`)
      : null;
  return failure(RCODE.SERVFAIL, 'rewrite', why, found.errors);
}

/**
 * Applies one rule to one record.
 * @returns the target to look up, if the record is a CNAME whose target changes
 */
function changeRecord(record: LooseRecord, rule: ReplyRule, mayCut: boolean): string | null {
  switch (rule.kind) {
    case 'owner':
      record.owner = rule.map(record.owner);
      return null;
    case 'value':
      if (hasValue(record)) record.names[0] = rule.map(record.names[0]!);
      return null;
    case 'ttl':
      record.ttl = ttlAfter(record.ttl, [rule]);
      return null;
    case 'target': {
      if (!mayCut || record.type !== TYPE.CNAME || record.section !== SECTION.answer) return null;
      const target = rule.map(record.names[0]?.toLowerCase() ?? '');
      if (target === null) return null;
      record.names[0] = target;
      return target;
    }
    case 'rcode':
    case 'option':
      return null;
  }
}

/**
 * Builds the answer from the CNAMEs up to the one with the new target, followed by that target's records. Other
 * sections stay unchanged.
 */
function chainTo(cut: LooseRecord, loose: readonly LooseRecord[], found: Reply): LooseRecord[] {
  const answer = loose.filter(({ section }) => section === SECTION.answer);
  const kept = answer.slice(0, answer.indexOf(cut) + 1).filter(({ type }) => type === TYPE.CNAME);
  const fresh = found.bare
    ? []
    : looseRecords(found).filter(({ section }) => section === SECTION.answer);
  return [...kept, ...fresh, ...loose.filter(({ section }) => section !== SECTION.answer)];
}

const KEPT_FLAGS = FLAG.AA | FLAG.RA | FLAG.AD | FLAG.Z;

function written(
  reply: Reply,
  loose: readonly LooseRecord[],
  rules: readonly ReplyRule[],
  { query, writer }: EditParts,
  truncated: boolean,
): Reply {
  try {
    writer.reply(query, (reply.flags & KEPT_FLAGS) | (truncated ? FLAG.TC : 0));
    writeLoose(loose, writer);
  } catch (error) {
    if (!(error instanceof NameError) && !(error instanceof MessageFull)) throw error;
    if (error instanceof NameError) writer.abandon();
    return failure(
      RCODE.SERVFAIL,
      'rewrite',
      new Error(`the reply could not be rewritten: ${error.message}`),
    );
  }
  const { options, errors, cause } = reply;
  const made = writer.finish(rcodeAfter(reply.rcode, rules), reply.plugin);
  return made.with({ options, errors, cause });
}

function copyOf(
  from: Reply,
  rcode: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  ttls: boolean,
): Reply {
  const copy = from.with({ bytes, start, end, rcode });
  return ttls ? copy : copy.with({ ttlAt: null, ttl: -1 });
}

/** Looks up a target for the query. Returns null if the name is invalid or there is no reply. */
export function lookupFor(asked: Query, ask: (query: Query) => Maybe<Reply>): EditParts['lookup'] {
  return (name) => {
    const wire = parseNameOrNull(name);
    return wire === null ? null : andThen(ask(asked.asking(wire)), orNull);
  };
}

function orNull(reply: Reply): Reply | null {
  return reply === silence ? null : reply;
}
