/** `template`: builds answers from the query. */
import { andThen, isLater, type Maybe } from '../../base/maybe.ts';
import { type Pattern, compilePattern, PatternError } from '../../base/pattern.ts';
import { type Options, directive } from '../../corefile/syntax.ts';
import {
  type Next,
  type WorkerContext,
  definePlugin,
  type Plugin,
} from '../../engine/contract/plugin.ts';
import { endlessAliases, isEndless } from '../../engine/contract/lookup-bounds.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import {
  CLASS,
  className,
  FLAG,
  RCODE,
  TYPE,
  typeName,
  classNumber,
  rcodeName,
  rcodeNumber,
  typeNumber,
} from '../../wire/iana.ts';
import { dataOf, sentAnswers, writeRecord, type DnsRecord } from '../../wire/message.ts';
import { parseNameOrNull } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { cname } from '../../wire/record/table.ts';
import { failure, type ExtendedError, type Reply } from '../../wire/reply.ts';
import { MessageFull, SECTION } from '../../wire/writer.ts';
import { templateData, type Matched } from './data.ts';
import {
  constantRecord,
  makeRecord,
  RecordFailure,
  type RecordTemplate,
  doubtsAbout,
  readTemplate,
  type SectionName,
} from './record-template.ts';
import { TemplateCounters } from './template-counters.ts';
import type { Struct } from './go-values.ts';
import { required, zones } from '../../corefile/positions.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import {
  chained,
  custom,
  fallthrough,
  lines,
  setting,
  type Refuse,
} from '../../corefile/properties.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { value, wrong } from '../../corefile/word-values.ts';

const qclass = value(
  'CLASS',
  ({ text }) =>
    classNumber(text) ?? wrong(`invalid query class ${text}`, 'A class is IN, CH, HS or ANY.'),
  className,
);
const qtype = value(
  'TYPE',
  ({ text }) =>
    typeNumber(text) ?? wrong(`invalid RR class ${text}`, 'A type is A, AAAA, TXT … or ANY.'),
  typeName,
);
const rcode = value(
  'CODE',
  ({ text }) =>
    (/\d/.test(text) ? null : rcodeNumber(text)) ??
    wrong(`unknown rcode ${text}`, 'A code is NOERROR, NXDOMAIN, SERVFAIL, REFUSED …'),
  rcodeName,
);

function readPatterns(name: Token, words: readonly Token[], refuse: Refuse): readonly Pattern[] {
  needWords(name, words, refuse);
  return words.map(({ text, place }) => {
    try {
      return compilePattern(text);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      const { kind, message, hint } = error;
      const reason = kind === 'length' ? message : `could not parse regex: ${text}, ${message}`;
      return refuse(reason, place, { hint });
    }
  });
}

function readTemplates(
  name: Token,
  words: readonly Token[],
  refuse: Refuse,
): readonly RecordTemplate[] {
  needWords(name, words, refuse);
  return words.map((token) => readTemplate(name.text as SectionName, words, token, refuse));
}

function needWords(name: Token, words: readonly Token[], refuse: Refuse): void {
  if (words.length === 0)
    refuse(`Wrong argument count or unexpected line ending after '${name.text}'`, name.place, {
      code: 'argument-count',
    });
}

function readError(words: readonly Token[], refuse: Refuse): ExtendedError {
  const [code, text] = words;
  if (code === undefined || words.length > 2)
    return refuse("Wrong argument count or unexpected line ending after 'ederror'");
  if (!/^\d{1,5}$/.test(code.text) || Number(code.text) > 0xffff) {
    return refuse(`error parsing extended DNS error code ${code.text}`, code.place, {
      hint: 'RFC 8914 numbers them from 0.',
    });
  }
  return { code: Number(code.text), text: text?.text ?? '' };
}

const syntax = directive({
  name: 'template',
  summary: 'generates answers from the query, using templates',
  repeat: 'gather',
  args: {
    class: required(qclass, { help: 'query class: IN, CH … or ANY for all' }),
    type: required(qtype, {
      help: 'query type: A, AAAA … or ANY for all; a query for ANY matches every template',
    }),
    zones: zones({ help: 'zones that the template applies to' }),
  },
  properties: {
    patterns: lines(['match'], 'REGEX…', readPatterns, {
      help: 'the name (in lower case, with its trailing dot) must match one of these RE2 expressions (default: all names)',
    }),
    answers: lines(['answer'], 'RR…', readTemplates, {
      help: 'records for the answer section, as Go templates that produce zone file lines',
    }),
    additionals: lines(['additional'], 'RR…', readTemplates, {
      help: 'the same for the additional section',
    }),
    authorities: lines(['authority'], 'RR…', readTemplates, {
      help: 'the same for the authority section',
    }),
    rcode: chained(
      setting('rcode', rcode, {
        default: RCODE.NOERROR,
        help: 'result code; SERVFAIL replies have no records',
      }),
    ),
    error: custom('ederror', 'CODE [TEXT]', readError, {
      help: 'an Extended DNS Error (RFC 8914) for clients that use EDNS',
    }),
    fallthrough: fallthrough({
      help: 'pass a name in ZONES that no expression matches to the next template, then to the next plugin; without this, the reply is SERVFAIL',
    }),
  },
  retired: { upstream: 'CNAMEs are always followed' },
  warn: (uses) =>
    uses.flatMap((use) =>
      [...use.answers, ...use.additionals, ...use.authorities]
        .flat()
        .flatMap((template) =>
          doubtsAbout(template).map(({ text, hint, place }) =>
            pluginRemark('template', place, text, { code: 'template-fails', hint }),
          ),
        ),
    ),
});

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
  readonly answers: readonly DnsRecord[];
  readonly additionals: readonly DnsRecord[];
  readonly authorities: readonly DnsRecord[];
  truncated: boolean;
}

/** All templates in a server block. The first one that matches a query answers it. */
class TemplateLink {
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

  readonly link: Next = (query) => {
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
  };

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
    const step = (at: number, asker: Query): Maybe<Reply> => {
      if (at === targets.length) return this.#write(asker, template, { ...made, answers: all });
      all.push(made.answers[at]!);
      const wire = parseNameOrNull(targets[at] ?? '');
      if (targets[at] === null || wire === null) return step(at + 1, asker);
      const found = this.#context.ask(asker.asking(wire, query.type, CLASS.IN));
      const kept = isLater(found) ? asker.keep() : asker;
      return andThen(found, (reply) => {
        const failed = fails(reply, at);
        if (failed !== null) return failed;
        made.truncated = reply.truncated;
        if (!reply.bare) all.push(...sentAnswers(reply).map(({ record }) => record));
        return step(at + 1, kept);
      });
    };
    return step(0, query);
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

/** Answers queries from the first template whose zone, class, type and expression match. */
export const template: Plugin = definePlugin({
  syntax,
  setup: (uses, context, next) => new TemplateLink(uses, context, next).link,
});
