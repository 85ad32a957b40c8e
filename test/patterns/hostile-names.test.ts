/**
 * Names chosen by clients and upstreams are matched against a Corefile's patterns in a whole server, for every
 * directive with a pattern. A query's time is compared with that of a query for a harmless pattern. Names grow step by
 * step, so an engine that tries every combination fails before it blocks the tests.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { leastCpuUs } from '../kit/growth.ts';
import { problemsIn } from '../../src/server/base/problem.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import { makeWorld, type World } from '../kit/world.ts';

interface Directive {
  /** Directives in a server block. P stands for the pattern, which is applied to the query's name. */
  readonly text: string;
  readonly type?: string;
  /** True if the pattern's backslashes are doubled. */
  readonly escaped?: boolean;
}

const answering = (record: string): string =>
  `template ANY ANY . {\n answer "{{ .Name }} 1 IN ${record}"\n }`;

const directives: Readonly<Record<string, Directive>> = {
  'view matches': { text: "view v {\n expr name() matches 'P'\n }\n whoami", escaped: true },
  'errors consolidate': {
    text: 'errors {\n consolidate 1h "P"\n }\n rewrite name suffix . ..x.\n whoami',
  },
  'rewrite name regex': { text: 'rewrite name regex "P" a.test\n whoami' },
  'rewrite answer name': {
    text: `rewrite stop {\n name suffix . .\n answer name "P" a.test\n }\n ${answering('A 192.0.2.1')}`,
  },
  'rewrite answer value': {
    text: `rewrite stop {\n name suffix . .\n answer value "P" a.test\n }\n ${answering('MX 1 {{ .Name }}')}`,
    type: 'MX',
  },
  'rewrite ttl regex': { text: 'rewrite ttl regex "P" 5\n whoami' },
  'rewrite rcode regex': { text: 'rewrite rcode regex "P" NOERROR NXDOMAIN\n whoami' },
  'rewrite cname regex': {
    text: `rewrite cname regex "P" a.test.\n ${answering('CNAME {{ .Name }}')}`,
    type: 'CNAME',
  },
  'template match': {
    text: 'template ANY ANY . {\n match "P"\n rcode NXDOMAIN\n fallthrough\n }\n whoami',
  },
};

/**
 * Patterns that an attacker would look for in a Corefile. None of them matches names that consist of the letters a and
 * b and end in `.x!.`.
 */
const hostile: readonly string[] = [
  '^([a-z]+)+\\.y\\.$',
  '^([a-z.]+)+Y$',
  '([a-b.]*)*Y',
  '^(a|aa|b|\\.)+$',
  '^(a|b|ab|ba|\\.)*Y',
  '(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)Y$',
  '^(([ab]+)+([.]+)+)+$',
  '^(?:[ab.]+[ab.]+)+Y',
  '(?i)^(?:(?:[A-Z]|[^0-9])+)+Y$',
  '^(\\w+\\.?)+$',
  '(?:[ab]?.?){200}Y',
  '([ab.]{1,300}){3}Y',
  '(?:[ab]|.)*a(?:[ab]|.){12}Y',
];

/**
 * The maximum cost of a pattern relative to a harmless one. The largest pattern needs about a hundred steps per letter.
 */
const RATIO_MAX = 100;

/** The letters a and b in labels of 60. Each seed gives a different name. */
function nameOf(length: number, seed = 1): string {
  const random = seededRandom(1000 * length + seed);
  const letters = Array.from({ length }, (_, at) =>
    at % 61 === 60 ? '.' : 'ab'[random.integer(2)]!,
  );
  return `${letters.join('')}.x!.`;
}

function serving(directive: string, pattern: string): Promise<World> {
  const { text, escaped } = directives[directive]!;
  const written = escaped === true ? pattern.replaceAll('\\', '\\\\') : pattern;
  return makeWorld(`.:53 {\n ${text.replace('P', () => written)}\n}`);
}

/** A query's result, as seen by its client and by an operator. */
async function outcome(world: World, question: string): Promise<string> {
  const text = await world.dig(question);
  return `${text}\n${world.log.join('\n')}`;
}

/**
 * The CPU time in microseconds for a query with a name of that length. It is the minimum of several runs, each with a
 * different name.
 */
async function cost(world: World, length: number, type: string): Promise<number> {
  return leastCpuUs(5, (round) => world.ask(`${nameOf(length, round)} ${type}`));
}

describe('hostile names for the patterns in a Corefile', () => {
  for (const [directive, { type = 'A' }] of Object.entries(directives)) {
    test(`${directive}: the pattern sees the name`, async () => {
      const seen: string[] = [];
      for (const pattern of ['[ab]+\\.x!\\.', '[ab]+\\.y!\\.']) {
        const world = await serving(directive, pattern);
        seen.push(await outcome(world, `${nameOf(120)} ${type}`));
        await world.close();
      }
      assert.notEqual(seen[0], seen[1]);
    });

    test(`${directive}: no name is slow`, async () => {
      const harmless = await serving(directive, '^www\\.example\\.org\\.$');
      await cost(harmless, 240, type);
      const usual = Math.max(200, await cost(harmless, 240, type));
      await harmless.close();
      for (const pattern of hostile) {
        const world = await serving(directive, pattern);
        for (const length of [10, 16, 20, 22, 24, 26, 28, 40, 60, 120, 240]) {
          const spent = await cost(world, length, type);
          const text = `${pattern}, ${length} letters: ${spent} µs, a harmless pattern ${usual} µs`;
          assert.ok(spent < RATIO_MAX * usual, text);
        }
        await world.close();
      }
    });

    test(`${directive}: a pattern that unfolds to a million steps is refused`, async () => {
      for (const pattern of [
        '(x{1000}){1000}',
        '[ab]{1000}'.repeat(20),
        `(?:${'x'.repeat(99)}){999}`,
      ])
        await assert.rejects(serving(directive, pattern), (error) => {
          const [problem] = problemsIn(error) ?? [];
          assert.match(
            `${problem?.message} ${problem?.hint}`,
            /expression too large|invalid repeat count|expand to about \d+ instructions/,
          );
          assert.equal(problem?.place?.file, 'Corefile');
          return true;
        });
    });
  }
});
