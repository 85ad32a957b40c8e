/** Syntaxes like those of real plugins, and what they produce when a Corefile's lines are parsed. */
import assert from 'node:assert/strict';

import { pluginProblem, pluginRemark } from '../../src/server/corefile/problems.ts';
import {
  leading,
  oneZone,
  optional,
  required,
  rest,
  zones,
  type Position,
  type BoundPositions,
} from '../../src/server/corefile/positions.ts';
import {
  custom,
  each,
  fallthrough,
  fields,
  flag,
  lines,
  list,
  setting,
  zoneList,
  type PropertySchema,
} from '../../src/server/corefile/properties.ts';
import { bindDirective, directive } from '../../src/server/corefile/syntax.ts';
import type { BoundDirective, Options, Syntax } from '../../src/server/corefile/syntax.ts';
import {
  choice,
  duration,
  integer,
  percent,
  seconds,
  word,
  worded,
} from '../../src/server/corefile/word-values.ts';
import { read } from './read.ts';

/** Binds all uses of the directive in `. { BODY }`. */
export function bind<S extends Syntax>(
  syntax: S,
  body: string,
  old: readonly string[] = [],
): BoundDirective<S> {
  const { corefile, problems } = read(`. example.org {\n${body}\n}`, {
    directives: [syntax.name, ...old, 'other'],
  });
  assert.deepEqual(problems, []);
  const [block] = corefile.blocks;
  return bindDirective(
    syntax,
    block!.directives.filter(({ name }) => name !== 'other'),
    {
      zones: block!.keys.map(({ zone }) => zone),
    },
  );
}

export function only<S extends Syntax>(syntax: S, body: string): Omit<Options<S>, 'at'> {
  const { options, problems } = bind(syntax, body);
  assert.deepEqual(
    problems.map(({ message }) => message),
    [],
  );
  assert.equal(options.length, 1);
  const { at, ...rest_ } = options[0] as { at: unknown };
  assert.ok(at);
  return rest_ as Omit<Options<S>, 'at'>;
}

export const messages = (syntax: Syntax, body: string): string[] =>
  bind(syntax, body).problems.map(({ message }) => message);

export const cache: Syntax<
  {
    ttlSeconds: Position<number | null>;
    zones: Position<readonly string[]>;
  },
  {
    success: PropertySchema<
      BoundPositions<{
        capacity: Position<number>;
        ttlSeconds: Position<number>;
        minTtlSeconds: Position<number>;
      }>
    >;
    prefetch: PropertySchema<BoundPositions<{
      amount: Position<number>;
      durationMs: Position<number>;
      percentage: Position<number>;
    }> | null>;
    servfailMs: PropertySchema<number>;
    disable: PropertySchema<
      readonly BoundPositions<{
        type: Position<'success' | 'denial'>;
        zones: Position<readonly string[]>;
      }>[]
    >;
    keepTtl: PropertySchema<boolean>;
  },
  'once'
> = directive({
  name: 'cache',
  summary: 'keep answers',
  repeat: 'once',
  args: {
    ttlSeconds: leading(
      worded(
        seconds('TTL', { min: 1 }),
        (text) => `cache TTL can not be zero or negative: ${text}`,
      ),
      { help: 'the longest time that an entry is cached' },
    ),
    zones: zones({ help: 'the zones whose answers are cached' }),
  },
  properties: {
    success: fields(
      'success',
      {
        capacity: required(integer('CAPACITY')),
        ttlSeconds: optional(seconds('TTL', { min: 1 }), { default: 3600 }),
        minTtlSeconds: optional(seconds('MINTTL', { min: 0 }), { default: 5 }),
      },
      {
        default: { capacity: 10_000, ttlSeconds: 3600, minTtlSeconds: 5 },
        defaultText: '10000 3600 5',
      },
    ),
    prefetch: fields('prefetch', {
      amount: required(integer('AMOUNT', { min: 1 })),
      durationMs: leading(duration('DURATION'), { default: 60_000 }),
      percentage: optional(percent('PERCENTAGE%', { min: 10, max: 90 }), { default: 10 }),
    }),
    servfailMs: setting('servfail', duration('DURATION', { minMs: 0, maxMs: 300_000 }), {
      default: 5000,
    }),
    disable: each('disable', { type: required(choice('success', 'denial')), zones: zones() }),
    keepTtl: flag('keepttl', { help: 'hand out the original TTL always' }),
  },
});

export const forward: Syntax<
  {
    from: Position<string>;
    to: Position<readonly string[]>;
  },
  {
    except: PropertySchema<readonly string[] | null>;
    forceTcp: PropertySchema<boolean>;
    preferUdp: PropertySchema<boolean>;
    policy: PropertySchema<'random' | 'round_robin' | 'sequential'>;
    healthCheck: PropertySchema<BoundPositions<{
      intervalMs: Position<number>;
      domain: Position<string>;
    }> | null>;
    tls: PropertySchema<string[] | null>;
    expireMs: PropertySchema<number>;
    maxAgeMs: PropertySchema<number | null>;
  },
  'each'
> = directive({
  name: 'forward',
  summary: 'ask other servers',
  repeat: 'each',
  args: { from: oneZone('FROM'), to: rest(word('TO'), { min: 1 }) },
  properties: {
    except: zoneList('except', { show: 'IGNORED_NAMES' }),
    forceTcp: flag('force_tcp'),
    preferUdp: flag('prefer_udp'),
    policy: setting('policy', choice('random', 'round_robin', 'sequential'), { default: 'random' }),
    healthCheck: fields('health_check', {
      intervalMs: required(duration('DURATION')),
      domain: optional(word('FQDN'), { default: '.' }),
    }),
    tls: custom('tls', '[CERT KEY] [CA]', (words, refuse) =>
      words.length > 3 ? refuse('too many files', words[3]!.place) : words.map(({ text }) => text),
    ),
    expireMs: setting('expire', duration('DURATION'), { default: 10_000 }),
    maxAgeMs: setting('max_age', duration('DURATION')),
  },
  retired: { protocol: 'write force_tcp' },
  formerly: { proxy: 'it was replaced in CoreDNS 1.5' },
  exclusive: [['force_tcp', 'prefer_udp']],
  check({ maxAgeMs, expireMs }, at) {
    if (maxAgeMs === null || maxAgeMs >= expireMs) return [];
    return [pluginProblem('forward', at, 'max_age must not be less than expire')];
  },
  warn({ to }, at) {
    return to.length > 15 ? [pluginRemark('forward', at, 'many')] : [];
  },
});

export const hosts: Syntax<
  {
    file: Position<string>;
    zones: Position<readonly string[]>;
  },
  {
    inline: PropertySchema<readonly string[][]>;
    ttlSeconds: PropertySchema<number>;
    fallthrough: PropertySchema<readonly string[] | null>;
  },
  'once'
> = directive({
  name: 'hosts',
  summary: 'answer from a hosts file',
  repeat: 'once',
  args: { file: optional(word('FILE'), { default: '/etc/hosts' }), zones: zones() },
  properties: {
    inline: lines(
      '*',
      'ADDRESS NAME…',
      (name, words) => [name.text, ...words.map(({ text }) => text)],
      {
        above: 'fallthrough',
      },
    ),
    ttlSeconds: setting('ttl', seconds('SECONDS', { min: 1, max: 65_535 }), { default: 3600 }),
    fallthrough: fallthrough(),
  },
});

export const acl: Syntax<
  {
    zones: Position<readonly string[]>;
  },
  {
    rules: PropertySchema<
      readonly {
        action: string;
        words: string[];
      }[]
    >;
  },
  'gather'
> = directive({
  name: 'acl',
  summary: 'rules about clients',
  repeat: 'gather',
  args: { zones: zones() },
  properties: {
    rules: lines(
      ['allow', 'block', 'filter', 'drop'],
      '[type QTYPE…] [net SOURCE…]',
      (name, words) => ({
        action: name.text,
        words: words.map(({ text }) => text),
      }),
    ),
  },
  check(rules, at) {
    return rules.length > 2 ? [pluginProblem('acl', at, 'too many')] : [];
  },
});

export const kubernetes: Syntax<
  {
    zones: Position<readonly string[]>;
  },
  {
    namespaces: PropertySchema<readonly string[]>;
    pods: PropertySchema<'disabled' | 'insecure' | 'verified'>;
    ttlSeconds: PropertySchema<number>;
    fallthrough: PropertySchema<readonly string[] | null>;
  },
  'once'
> = directive({
  name: 'kubernetes',
  summary: 'cluster names',
  repeat: 'once',
  args: { zones: zones() },
  properties: {
    namespaces: list('namespaces', word('NAMESPACE')),
    pods: setting(
      'pods',
      worded(choice('disabled', 'insecure', 'verified'), (text) => `wrong value for pods: ${text}`),
      { default: 'disabled' },
    ),
    ttlSeconds: setting(
      'ttl',
      worded(
        seconds('TTL', { min: 0, max: 3600 }),
        (text) => `ttl must be in range [0, 3600]: ${text}`,
      ),
      { default: 5 },
    ),
    fallthrough: fallthrough(),
  },
  retired: { upstream: 'CNAMEs are always followed', resyncperiod: 'there is no resync' },
});
