/** A query while rules change it. */
import { optionBytes, optionsIn, type EdnsOption } from '../../wire/edns.ts';
import { HEADER, TYPE } from '../../wire/iana.ts';
import { NameError, parseName } from '../../wire/name.ts';
import { Query, renamed } from '../../transport/query.ts';
import type { NameText } from './name-text.ts';
import type { ReplyRule, RewriteTurn } from './rule.ts';

/** UDP size to use when an option is added to a query without EDNS, as in CoreDNS. */
const UDP_SIZE = 4096;
/** The DO flag in the upper byte of an OPT record's flags. */
const DO = 0x80;

export class ChangedQuery implements RewriteTurn {
  readonly replyRules: ReplyRule[] = [];
  /** Set when a rule produced an invalid name. */
  failed: Error | null = null;
  readonly #text: NameText;
  #query: Query;
  #options: readonly EdnsOption[] | null = null;
  #optionsChanged = false;
  /** Codes of the options that are sent upstream, which excludes those that only the client sent. */
  readonly #sent = new Set<number>();

  /** @param text the text of the current name, which becomes invalid when the name changes */
  constructor(query: Query, text: NameText) {
    this.#query = query;
    this.#text = text;
  }

  get query(): Query {
    return this.#query;
  }

  get options(): readonly EdnsOption[] {
    return (this.#options ??= optionsOf(this.#query));
  }

  /** True if the options differ from those in the original query. */
  get optionsChanged(): boolean {
    return this.#optionsChanged;
  }

  rename(name: string): void {
    try {
      this.#query = this.#query.asking(parseName(name));
      // A plugin that inspects the whole reply would not see this name in it.
      if (this.#query.screen !== null) this.#query.screen = renamed;
    } catch (error) {
      if (!(error instanceof NameError)) throw error;
      this.failed = new Error(`invalid name after rewrite: ${name}`, { cause: error });
    }
    this.#text.forget();
  }

  retype(type: number, qclass: number): void {
    this.#query = this.#query.asking(this.#query.wireName, type, qclass);
    this.#text.forget();
  }

  setOptions(options: readonly EdnsOption[]): void {
    this.#options = options;
    this.#optionsChanged = true;
  }

  sendOption(code: number): void {
    this.#sent.add(code);
  }

  addReplyRules(rules: readonly ReplyRule[]): void {
    this.replyRules.push(...rules);
  }

  finished(): Query {
    if (!this.#optionsChanged) return this.#query;
    const options = this.#options ?? [];
    const query = withOptions(this.#query, options);
    const before = this.#query.upstreamOptions;
    if (before !== null)
      for (const { code } of optionsIn(before, 0, before.length)) this.#sent.add(code);
    if (this.#sent.size > 0)
      query.upstreamOptions = optionBytes(options.filter(({ code }) => this.#sent.has(code)));
    return query;
  }
}

export function optionsOf({ bytes, optionsStart, optionsEnd }: Query): EdnsOption[] {
  return optionsIn(bytes, optionsStart, optionsEnd);
}

/** Returns the same client's question with different EDNS options. If the query has no EDNS, it gets an OPT record. */
function withOptions(from: Query, options: readonly EdnsOption[]): Query {
  if (!from.edns && options.length === 0) return from;
  const data = optionBytes(options);
  const question = from.bytes.subarray(from.start, from.start + from.questionEnd);
  const opt = question.length;
  const bytes = new Uint8Array(opt + 11 + data.length);
  bytes.set(question);
  bytes.fill(0, HEADER.ANCOUNT, HEADER.SIZE);
  bytes[HEADER.ARCOUNT + 1] = 1;
  const size = from.edns ? from.udpSize : UDP_SIZE;
  bytes[opt + 2] = TYPE.OPT;
  bytes[opt + 3] = size >> 8;
  bytes[opt + 4] = size & 0xff;
  bytes[opt + 7] = from.dnssecOk ? DO : 0;
  bytes[opt + 9] = data.length >> 8;
  bytes[opt + 10] = data.length & 0xff;
  bytes.set(data, opt + 11);
  const query = new Query();
  const triage = query.read(bytes, 0, bytes.length);
  if (triage !== 'serve') throw new Error(`cannot parse a query that was built here: ${triage}`);
  if (from.edns) query.udpLimit = from.udpLimit;
  query.askFor(from);
  return query.keep();
}
