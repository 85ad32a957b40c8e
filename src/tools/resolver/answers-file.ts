/**
 * The answers file, whose rules script a network so that a lookup can be planned and replayed. Answers come from the
 * first rule that matches the server, name and type. All other names are NXDOMAIN.
 */
import { parseAddress } from '../../server/base/ip.ts';
import { isObject } from '../../server/base/json-object.ts';
import { Problem } from '../../server/base/problem.ts';
import { absolute } from './client.ts';
import { nxdomain, parseAnswerSpec, type AnswerSpec } from './answer-spec.ts';
import { sameName } from './reply.ts';

/** A rule, with the questions that it matches and their answers. */
export interface AnswerRule {
  /** Null: any. */
  readonly server: string | null;
  /** Absolute name, `*.suffix.` (anything below) or `*`. */
  readonly name: string;
  /** Mnemonic or `*`. */
  readonly type: string;
  /** The 1st, 2nd … answer; the last one repeats. */
  readonly answers: readonly AnswerSpec[];
}

/** A scripted network, with the servers' answers and which of them are unreachable. */
export interface Script {
  readonly rules: readonly AnswerRule[];
  /** Milliseconds from query to reply. */
  readonly delayMs: number;
  /** No process is listening, so there is an immediate ICMP port unreachable or TCP reset. */
  readonly closed: ReadonlySet<string>;
  /** No host has this address, so the kernel reports the host unreachable after 3 s. */
  readonly unrouted: ReadonlySet<string>;
  /** The kernel has no route, so there is an immediate error and nothing is sent. */
  readonly noRoute: ReadonlySet<string>;
  /** UDP is answered, TCP connections are reset. */
  readonly noTcp: ReadonlySet<string>;
}

/** A network in which every name is NXDOMAIN. */
export const emptyScript: Script = {
  rules: [],
  delayMs: 20,
  closed: new Set(),
  unrouted: new Set(),
  noRoute: new Set(),
  noTcp: new Set(),
};

const mostRules = 100_000;

/**
 * @param value the parsed YAML or JSON
 * @param file its name, for errors
 * @throws Problem
 */
export function parseAnswers(value: unknown, file: string): Script {
  if (!isObject(value)) throw wrong(file, 'must contain a mapping with "rules:"');
  const known = new Set(['rules', 'delay', 'closed', 'unrouted', 'noroute', 'notcp']);
  for (const key of Object.keys(value)) {
    if (!known.has(key)) {
      throw wrong(file, `unknown key "${key}"`, `Known: ${[...known].join(', ')}`);
    }
  }
  const rules = value['rules'] ?? [];
  if (!Array.isArray(rules)) throw wrong(file, '"rules" must be a list');
  if (rules.length > mostRules) throw wrong(file, `more than ${mostRules} rules`);
  const delay = value['delay'] ?? 20;
  if (typeof delay !== 'number' || !(delay >= 0 && delay <= 3_600_000)) {
    throw wrong(file, '"delay" must be milliseconds, 0 to 3600000');
  }
  return {
    rules: rules.map((rule: unknown, index) => parseRule(rule, `${file}: rule ${index + 1}`)),
    delayMs: delay,
    closed: servers(value['closed'], 'closed', file),
    unrouted: servers(value['unrouted'], 'unrouted', file),
    noRoute: servers(value['noroute'], 'noroute', file),
    noTcp: servers(value['notcp'], 'notcp', file),
  };
}

function parseRule(rule: unknown, where: string): AnswerRule {
  if (!isObject(rule)) throw wrong(where, 'must be a mapping with name, type and answer');
  const { server = null, name = '*', type = '*', answer } = rule;
  for (const key of Object.keys(rule)) {
    if (!['server', 'name', 'type', 'answer'].includes(key)) {
      throw wrong(where, `unknown key "${key}"`, 'Known: server, name, type, answer');
    }
  }
  if (server !== null && (typeof server !== 'string' || parseAddress(server) === null)) {
    throw wrong(where, '"server" must be an IP address');
  }
  if (typeof name !== 'string' || name === '') throw wrong(where, '"name" must be a name');
  if (typeof type !== 'string') throw wrong(where, '"type" must be A, AAAA, … or "*"');
  const list = Array.isArray(answer) ? answer : [answer];
  if (list.length === 0) throw wrong(where, '"answer" is an empty list');
  return {
    server,
    name: name === '*' ? name : absolute(name),
    type: type.toUpperCase(),
    answers: list.map((text: unknown) => {
      if (typeof text !== 'string') throw wrong(where, '"answer" must be words, or a list of them');
      return parseAnswerSpec(text, where);
    }),
  };
}

/** The index of each rule's next answer, because a list provides its answers in turn. */
export type RuleCounts = Map<AnswerRule, number>;

/** Returns the script's next answer to this question, and advances the rule's count. */
export function nextAnswer(
  script: Script,
  counts: RuleCounts,
  server: string,
  name: string,
  type: string,
): AnswerSpec {
  const rule = script.rules.find((candidate) => matches(candidate, server, name, type));
  if (rule === undefined) return nxdomain;
  const count = counts.get(rule) ?? 0;
  counts.set(rule, count + 1);
  return rule.answers[Math.min(count, rule.answers.length - 1)] ?? nxdomain;
}

function matches(rule: AnswerRule, server: string, name: string, type: string): boolean {
  if (rule.server !== null && rule.server !== server) return false;
  if (rule.type !== '*' && rule.type !== type) return false;
  if (rule.name === '*') return true;
  if (rule.name.startsWith('*.')) {
    return name.toLowerCase().endsWith(rule.name.slice(1).toLowerCase());
  }
  return sameName(rule.name, name);
}

function servers(value: unknown, key: string, file: string): ReadonlySet<string> {
  if (value === undefined || value === null) return new Set();
  const list: unknown[] = Array.isArray(value) ? value : [value];
  for (const address of list) {
    if (typeof address !== 'string' || parseAddress(address) === null) {
      throw wrong(file, `"${key}" must list IP addresses`);
    }
  }
  return new Set(list as string[]);
}

function wrong(where: string, text: string, hint?: string): Problem {
  return new Problem({
    code: 'bad-answers-file',
    text: `${where}: ${text}`,
    hint,
    remedy: 'docs/answers-file.md describes the format.',
  });
}
