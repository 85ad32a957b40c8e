/** Rules for EDNS options. */
import { parseHex } from '../../wire/encoding.ts';
import { writeOption } from '../../wire/edns-option.ts';
import type { EdnsOption } from '../../wire/edns.ts';
import { parseAddress } from '../../base/ip.ts';
import { OPTION } from '../../wire/iana.ts';
import { printName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { RuleError, type ReplyRule, type RewriteRule, type RewriteTurn } from './rule.ts';

type EdnsAction = 'set' | 'append' | 'replace';

/** Returns the option's data. If there is none for this query, returns null and the rule does nothing. */
type Content = (query: Query) => Uint8Array | null;

/** `edns0 local|nsid|subnet set|append|replace|unset … [revert]`. @throws RuleError */
export function ednsRule(continues: boolean, words: readonly string[]): RewriteRule {
  if (words.length < 2) throw new RuleError('too few arguments for an EDNS0 rule');
  const [type, action] = words.slice(0, 2).map((word) => word.toLowerCase()) as [string, string];
  if (action === 'unset') return unsetRule(continues, type, words.slice(2));
  if (action !== 'set' && action !== 'append' && action !== 'replace') {
    throw new RuleError(`invalid action: ${JSON.stringify(action)}`);
  }
  const revert = words.at(-1) === 'revert';
  const rest = words.slice(2, revert ? -1 : undefined);
  const { code, content, personal = false } = optionOf(type, rest);
  return {
    continues,
    // `append` and `replace` depend on the client's options.
    personal: personal || action !== 'set',
    fits: () => true,
    apply: (turn) => write(turn, code, action, content(turn.query), revert),
    ...(type === 'local' ? { optionCode: code } : {}),
  };
}

function optionOf(
  type: string,
  words: readonly string[],
): { readonly code: number; readonly content: Content; readonly personal?: boolean } {
  switch (type) {
    case 'local': {
      if (words.length !== 2) throw new RuleError('EDNS0 local rules require three or four args');
      const [code, data] = words as [string, string];
      const personal = data.startsWith('{') && !ofQuestion.has(data);
      return { code: wholeNumber(code, 0xffff), content: localContent(data), personal };
    }
    case 'nsid':
      if (words.length !== 0)
        throw new RuleError('EDNS0 NSID rules can accept no more than one arg');
      return { code: OPTION.NSID, content: () => new Uint8Array(0) };
    case 'subnet':
      if (words.length !== 2) throw new RuleError('EDNS0 subnet rules require three or four args');
      return {
        code: OPTION.ECS,
        content: subnetContent(words[0]!, words[1]!),
        personal: true,
      };
    default:
      throw new RuleError(`invalid rule type ${JSON.stringify(type)}`);
  }
}

/** Parses text as its bytes, `0x…` as hexadecimal, and `{…}` as a value to take from the query. */
function localContent(text: string): Content {
  const variable = /^\{(.*)\}$/.exec(text);
  if (variable !== null) return variableContent(variable[1]!, text);
  const bytes = text.startsWith('0x') ? parseHex(text.slice(2)) : utf8.encode(text);
  if (bytes === null)
    throw new RuleError(`${text} is not hex`, 'Write hex with two digits for each byte.');
  return () => bytes;
}

const variables: Readonly<Record<string, Content>> = {
  qname: (query) => utf8.encode(printName(query.wireName)),
  qtype: (query) => pair(query.type),
  client_ip: (query) =>
    query.peer.slice(query.peerAt, query.peerAt + (query.family === 4 ? 4 : 16)),
  client_port: (query) => pair(query.peerPort),
  protocol: ({ overStream }) => utf8.encode(overStream ? 'tcp' : 'udp'),
  server_ip: (query) => parseAddress(query.local),
  server_port: (query) => pair(query.localPort),
};

/** Variables with the same value for all clients that send the same question. */
const ofQuestion: ReadonlySet<string> = new Set(['{qname}', '{qtype}']);

function variableContent(name: string, text: string): Content {
  if (Object.hasOwn(variables, name)) return variables[name]!;
  const parts = name.split('/');
  if (parts.length < 2 || parts.includes('')) {
    throw new RuleError(
      `unsupported variable name ${JSON.stringify(text)}`,
      `The variables are ${Object.keys(variables).join(', ')}, and labels of the metadata plugin such as kubernetes/client-namespace.`,
    );
  }
  return (query) => {
    const note = query.notes?.get(name) ?? '';
    return note === '' ? null : utf8.encode(note);
  };
}

/** Builds a Client Subnet option with this many bits of the client's address (RFC 7871). */
function subnetContent(bits4: string, bits6: string): Content {
  const v4 = wholeNumber(bits4, 0xffff);
  if (v4 > 32) throw new RuleError(`invalid IPv4 bit mask length ${v4}`);
  const v6 = wholeNumber(bits6, 0xffff);
  if (v6 > 128) throw new RuleError(`invalid IPv6 bit mask length ${v6}`);
  return ({ client: address, family }) =>
    writeOption({ kind: 'ecs', address, source: family === 4 ? v4 : v6, scope: 0 }).data;
}

function unsetRule(continues: boolean, type: string, words: readonly string[]): RewriteRule {
  const count = type === 'local' ? 1 : 0;
  const codes: Readonly<Record<string, number>> = { nsid: OPTION.NSID, subnet: OPTION.ECS };
  if (type !== 'local' && codes[type] === undefined)
    throw new RuleError(`invalid rule type ${JSON.stringify(type)}`);
  if (words.length !== count) {
    throw new RuleError(
      `${type} unset action requires exactly ${count === 1 ? 'two arguments' : 'one argument'}`,
    );
  }
  const code = codes[type] ?? wholeNumber(words[0]!, 0xffff);
  return {
    continues,
    fits: () => true,
    apply(turn) {
      const left = turn.options.filter((option) => option.code !== code);
      if (left.length < turn.options.length) turn.setOptions(left);
      return true;
    },
    ...(type === 'local' ? { optionCode: code } : {}),
  };
}

/**
 * `set` overwrites the first option with this code or, if there is none, adds one. `replace` only overwrites, and
 * `append` only adds.
 */
function write(
  turn: RewriteTurn,
  code: number,
  action: EdnsAction,
  data: Uint8Array | null,
  revert: boolean,
): boolean {
  if (data === null) return false;
  const { options } = turn;
  const at = options.findIndex((option) => option.code === code);
  if (at < 0 && action === 'replace') return false;
  // The existing option stays, but the rule counts as applied, as in CoreDNS.
  if (at >= 0 && action === 'append') return true;
  const option: EdnsOption = { code, data };
  turn.setOptions(at < 0 ? [...options, option] : options.with(at, option));
  turn.sendOption(code);
  if (revert) {
    const undo: ReplyRule = { kind: 'option', code, before: at < 0 ? null : options[at]!.data };
    turn.addReplyRules([undo]);
  }
  return true;
}

/** Parses a number like Go does when no base is given: decimal, or with the prefix `0x`, `0o`, `0` or `0b`. */
function wholeNumber(text: string, most: number): number {
  const octal = /^0o?([0-7]+)$/i.exec(text);
  const value =
    octal === null
      ? /^(?:0x[\da-f]+|0b[01]+|\d+)$/i.test(text)
        ? Number(text)
        : Number.NaN
      : Number.parseInt(octal[1]!, 8);
  const quoted = JSON.stringify(text);
  if (Number.isNaN(value))
    throw new RuleError(`strconv.ParseUint: parsing ${quoted}: invalid syntax`);
  if (value > most) throw new RuleError(`strconv.ParseUint: parsing ${quoted}: value out of range`);
  return value;
}

function pair(value: number): Uint8Array {
  return Uint8Array.of(value >> 8, value & 0xff);
}

const utf8 = new TextEncoder();
