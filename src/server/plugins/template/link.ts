/** `template` in the chain, which finds the template that matches and builds its reply. */
import { andThen, isLater, type Maybe } from '../../base/maybe.ts';
import type { Pattern } from '../../base/pattern.ts';
import type { Options } from '../../corefile/syntax.ts';
import type { Next, WorkerContext } from '../../engine/contract/plugin.ts';
import { endlessAliases, isEndless } from '../../engine/contract/lookup-bounds.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { CLASS, className, FLAG, RCODE, TYPE, typeName } from '../../wire/iana.ts';
import { dataOf, readMessage, writeRecord, type DnsRecord } from '../../wire/message.ts';
import { NameError, parseName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { ReadError } from '../../wire/reader.ts';
import { cname } from '../../wire/record/table.ts';
import { Records } from '../../wire/records.ts';
import { failure, type ExtendedError, type Reply } from '../../wire/reply.ts';
import { MessageFull, SECTION } from '../../wire/writer.ts';
import { templateData, type Matched } from './data.ts';
import {
  constantRecord,
  makeRecord,
  RecordFailure,
  type RecordTemplate,
} from './record-template.ts';
import type { syntax } from './syntax.ts';
import { TemplateCounters } from './template-counters.ts';
import type { Struct } from './go-values.ts';

/** A `template` ready for queries. */
interface Template {
  readonly zones: ZoneMatch;
  readonly class: number;
  readonly type: number;
  /** Empty if every name matches. */
  readonly patterns: readonly Pattern[];
  readonly answers: readonly Maker[];
  readonly additionals: readonly Maker[];
  readonly authorities: readonly Maker[];
  readonly rcode: number;
  readonly errors: readonly ExtendedError[] | null;
  /** Zones of `fallthrough`, or null. */
  readonly through: ZoneMatch | null;
}

interface Maker {
  readonly template: RecordTemplate;
  /** The record, if all queries get the same one. */
  readonly constant: DnsRecord | null;
}

/** The records in a reply before it is written. */
interface DraftReply {
  answers: DnsRecord[];
  readonly additionals: readonly DnsRecord[];
  readonly authorities: readonly DnsRecord[];
  truncated: boolean;
}

/** All templates in a server block. The first one that matches a query answers it. */
export class TemplateLink {
  readonly #templates: readonly Template[];
  readonly #context: WorkerContext;
  readonly #next: Next;
  readonly #counters: TemplateCounters;

  constructor(uses: Options<typeof syntax>, context: WorkerContext, next: Next) {
    this.#context = context;
    this.#next = next;
    this.#counters = new TemplateCounters(context.metrics);
    const makers = (lines: readonly (readonly RecordTemplate[])[]): Maker[] =>
      lines.flat().map((template) => ({ template, constant: constantRecord(template) }));
    this.#templates = uses.map((use) => ({
      zones: new ZoneMatch(use.zones),
      class: use.class,
      type: use.type,
      patterns: use.patterns.flat(),
      answers: makers(use.answers),
      additionals: makers(use.additionals),
      authorities: makers(use.authorities),
      rcode: use.rcode,
      errors: use.error === null ? null : [use.error],
      through: use.fallthrough === null ? null : new ZoneMatch(use.fallthrough),
    }));
  }

  answer(query: Query): Maybe<Reply> {
    for (const template of this.#templates) {
      const { class: qclass, type, patterns, through } = template;
      if (type !== query.type && type !== TYPE.ANY && query.type !== TYPE.ANY) continue;
      if (qclass !== query.class && qclass !== CLASS.ANY && query.class !== CLASS.ANY) continue;
      const zone = template.zones.find(query);
      if (zone === null) continue;
      const pattern = patterns.find((candidate) => candidate.test(query.name));
      if (pattern !== undefined || patterns.length === 0)
        return this.#matched(query, template, zone, pattern ?? null);
      if (through === null || !through.holds(query)) return failure(RCODE.SERVFAIL, 'template');
    }
    return this.#next(query);
  }

  #matched(query: Query, template: Template, zone: string, pattern: Pattern | null): Maybe<Reply> {
    const qclass = query.class === CLASS.ANY ? template.class : query.class;
    const type = query.type === TYPE.ANY ? template.type : query.type;
    this.#counters.matched(query.route, zone, qclass, type);
    if (template.rcode === RCODE.SERVFAIL) {
      return failure(RCODE.SERVFAIL, 'template', null, template.errors);
    }
    let data: Struct | null = null;
    const dataOnce = (): Struct => {
      const match = pattern?.exec(query.name) ?? { groups: [query.name], named: {} };
      const matched: Matched = {
        zone,
        class: className(qclass),
        type: typeName(type),
        pattern: pattern?.source ?? '.*',
        match,
      };
      return (data ??= templateData(query, matched));
    };
    const make = (makers: readonly Maker[]): DnsRecord[] =>
      makers.flatMap(({ template: text, constant }) => {
        if (constant !== null) return constant;
        try {
          return makeRecord(text, dataOnce()) ?? [];
        } catch (error) {
          if (error instanceof RecordFailure)
            this.#counters.failed(query.route, zone, qclass, type, text, error);
          throw error;
        }
      });
    try {
      const answers = make(template.answers);
      const made = {
        answers,
        additionals: make(template.additionals),
        authorities: make(template.authorities),
        truncated: false,
      };
      return this.#follow(query, template, made, (at, found) => {
        const isMade = ({ template: text, constant }: Maker): boolean =>
          constant !== null || makeRecord(text, dataOnce()) !== null;
        const { template: text } = template.answers.filter(isMade)[at]!;
        const why = new RecordFailure(`"${text.text}": ${found.cause?.message}`, 'record');
        this.#counters.failed(query.route, zone, qclass, type, text, why);
        return failure(RCODE.SERVFAIL, 'template', why, found.errors);
      });
    } catch (error) {
      if (error instanceof RecordFailure) return failure(RCODE.SERVFAIL, 'template', error);
      throw error;
    }
  }

  /**
   * For address queries, looks up the targets of CNAMEs and adds the records found after each CNAME.
   * @param endless the error for an answer with too many CNAMEs in a row
   */
  #follow(
    query: Query,
    template: Template,
    made: DraftReply,
    endless: (at: number, found: Reply) => Reply,
  ): Maybe<Reply> {
    if (query.type !== TYPE.A && query.type !== TYPE.AAAA)
      return this.#write(query, template, made);
    const targets = made.answers.map((record) => dataOf(record, cname)?.target ?? null);
    if (targets.every((target) => target === null)) return this.#write(query, template, made);
    const all: DnsRecord[] = [];
    // The query that follows an alias loop reports it once, and the queries above it just pass the error on.
    const fails = (found: Reply, at: number): Reply | null => {
      if (found === endlessAliases) return endless(at, found);
      return isEndless(found) ? failure(RCODE.SERVFAIL, 'template', null, found.errors) : null;
    };
    const step = (from: number, asker: Query): Maybe<Reply> => {
      for (let at = from; at < targets.length; at++) {
        all.push(made.answers[at]!);
        const target = targets[at];
        if (target === null || target === undefined) continue;
        const found = this.#ask(asker, target);
        if (found !== null && isLater(found)) {
          const kept = asker.keep();
          return andThen(found, (later) => {
            const failed = fails(later, at);
            if (failed !== null) return failed;
            made.truncated = take(later, all);
            return step(at + 1, kept);
          });
        }
        if (found === null) continue;
        const failed = fails(found, at);
        if (failed !== null) return failed;
        made.truncated = take(found, all);
      }
      made.answers = all;
      return this.#write(asker, template, made);
    };
    return step(0, query);
  }

  #ask(query: Query, target: string): Maybe<Reply> | null {
    try {
      return this.#context.ask(query.asking(parseName(target), query.type, CLASS.IN));
    } catch (error) {
      if (error instanceof NameError) return null;
      throw error;
    }
  }

  #write(query: Query, { rcode, errors }: Template, made: DraftReply): Reply {
    const { writer } = this.#context;
    try {
      writer.reply(query, FLAG.AA | (made.truncated ? FLAG.TC : 0));
      for (const record of made.answers) writeRecord(writer, SECTION.answer, record);
      for (const record of made.authorities) writeRecord(writer, SECTION.authority, record);
      for (const record of made.additionals) writeRecord(writer, SECTION.additional, record);
    } catch (error) {
      if (!(error instanceof MessageFull)) throw error;
      return failure(RCODE.SERVFAIL, 'template', error);
    }
    return writer.finish(rcode, 'template').with({ errors });
  }
}

const walker = new Records();

/**
 * Appends the reply's answer section.
 * @returns true if it was truncated
 */
function take(found: Reply, all: DnsRecord[]): boolean {
  if (found.bare) return false;
  const records = answersOf(found);
  let index = 0;
  for (walker.of(found); walker.next() && walker.section === SECTION.answer; index++) {
    const record = records[index];
    if (record !== undefined) all.push({ ...record, ttl: walker.ttl });
  }
  return found.truncated;
}

function answersOf(found: Reply): readonly DnsRecord[] {
  try {
    return readMessage(found.bytes, found.start, found.end).answer;
  } catch (error) {
    if (error instanceof ReadError) return [];
    throw error;
  }
}
