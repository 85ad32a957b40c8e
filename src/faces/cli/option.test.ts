import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Problem } from '../../server/base/problem.ts';
import { helpText, manualPage } from './option-help.ts';
import { parseOptions, readOptions } from './option-parse.ts';
import { flag, group, many, maybe, one, type Option, type OptionTable } from './option.ts';
import { choice, duration, file, integer, text } from './option-values.ts';
import { verbNames, verbSummaries } from './verb-names.ts';
import { loadUsage } from './verbs.ts';

const table = {
  ...group('One', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'how'),
    count: one('--count', integer('N', 1, 9), 'how many'),
    client: many('-c, --client', text('NAME'), 'who'),
  }),
  ...group('Two', {
    all: flag('-a, --all', 'everything'),
    big: flag('-b', 'large'),
    wait: one('--wait', duration(1, 60_000), 'how long'),
  }),
};

const dig = {
  short: flag('+short', ''),
  tcp: flag('+tcp, +vc', ''),
  tries: maybe('+tries', integer('N', 0, 9), ''),
  type: one('-t', text('TYPE'), ''),
};

const go = {
  conf: one('-conf', file(), ''),
  port: one('-p, -dns.port', integer('PORT', 0, 65_535), ''),
  quiet: flag('-quiet', ''),
};

function refused(run: () => unknown, text: RegExp): void {
  assert.throws(run, (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.equal(error.code, 'usage');
    assert.match(error.print(), text);
    return true;
  });
}

describe('options in GNU syntax', () => {
  const parse = (line: string) => parseOptions(table, line.split(' '));

  test('a value follows its option or is attached to it, in five spellings', () => {
    for (const line of ['-o json', '-ojson', '-o=json', '--output json', '--output=json'])
      assert.equal(parse(line).values.output, 'json', line);
  });

  test('letters without a value may share a dash', () => {
    const { values } = parse('-abojson');
    assert.deepEqual([values.all, values.big, values.output], [true, true, 'json']);
  });

  test('options that are not given are null, false or empty; the last of one counts, all of many count', () => {
    assert.deepEqual(parse('x').values, {
      output: null,
      count: null,
      client: [],
      all: false,
      big: false,
      wait: null,
    });
    const { values } = parse('--count 1 --count 2 -c a --client b');
    assert.deepEqual([values.count, values.client], [2, ['a', 'b']]);
  });

  test('words keep their order; after -- all are words', () => {
    assert.deepEqual(parse('a -a b - -- -b --all').words, ['a', 'b', '-', '-b', '--all']);
  });

  test('a switch accepts true or false', () => {
    assert.equal(parse('--all=false').values.all, false);
    assert.equal(parse('--all=true').values.all, true);
    refused(() => parse('--all=perhaps'), /invalid boolean value/);
  });

  test('durations have units', () => {
    for (const [given, ms] of [
      ['5', 5000],
      ['500ms', 500],
      ['1m', 60_000],
      ['2.5s', 2500],
    ] as const)
      assert.equal(parse(`--wait ${given}`).values.wait, ms);
    assert.equal(duration(1, 86_400_000).read('2h', '--wait'), 7_200_000);
    for (const wrong of ['soon', '-1', '5d'])
      refused(() => parse(`--wait=${wrong}`), /takes a time such as 5s, 500ms or 2m, not/);
  });

  test('a duration outside its range is refused with the range', () => {
    for (const wrong of ['0', '61s', '2h'])
      refused(() => parse(`--wait=${wrong}`), /--wait takes a time from 1ms to 1m, not/);
    refused(
      () => duration(10_000, 86_400_000).read('1s', '--window'),
      /--window takes a time from 10s to 24h, not "1s"/,
    );
  });

  test('errors name the option and suggest what was meant', () => {
    refused(() => parse('--otput json'), /unknown option --otput\n {2}Did you mean --output\?/);
    refused(() => parse('-y'), /^unknown option -y$/);
    refused(() => parse('-x'), /unknown option -x/);
    refused(() => parse('-ax'), /unknown option -x/);
    refused(() => parse('--count'), /--count needs a value/);
    refused(
      () => parse('--count --output json'),
      /--count needs a value, and --output is an option/,
    );
    refused(() => parse('--count 10'), /--count takes a whole number from 1 to 9, not "10"/);
    refused(() => parse('-o jsn'), /-o takes text or json, not "jsn"\n {2}Did you mean json\?/);
  });
});

describe('options in dig syntax', () => {
  const read = (line: string) => [...readOptions(dig, line.split(' '))];

  test('a plus option may be negated, have a value, and be abbreviated', () => {
    assert.deepEqual(
      read('+tcp +novc +tries=2 +tries +sho').map((given) =>
        typeof given === 'string' ? given : [given.key, given.on, given.value],
      ),
      [
        ['tcp', true, undefined],
        ['tcp', false, undefined],
        ['tries', true, 2],
        ['tries', true, undefined],
        ['short', true, undefined],
      ],
    );
  });

  test('words and options keep their order', () => {
    assert.deepEqual(
      read('a +tcp b -tMX').map((given) => (typeof given === 'string' ? given : given.key)),
      ['a', 'tcp', 'b', 'type'],
    );
  });

  test('an ambiguous prefix is rejected', () => refused(() => read('+t'), /unknown option/));

  test('a switch does not accept a value', () =>
    refused(() => read('+tcp=1'), /\+tcp does not accept a value/));
});

describe('flags in the syntax of Go', () => {
  const parse = (line: string) => parseOptions(go, line.split(' '), 'go');

  test('one dash equals two, and a value may follow an equals sign', () => {
    for (const line of ['-conf a', '--conf a', '-conf=a', '--conf=a'])
      assert.equal(parse(line).values.conf, 'a', line);
    assert.equal(parse('-dns.port 1053').values.port, 1053);
    assert.equal(parse('-quiet=false').values.quiet, false);
  });

  test('the first other word ends the flags', () => {
    const { values, words } = parse('-quiet surplus -conf a');
    assert.deepEqual([values.quiet, values.conf, words], [true, null, ['surplus', '-conf', 'a']]);
  });

  test("errors have Go's wording", () => {
    refused(() => parse('-qiet'), /flag provided but not defined: -qiet \(did you mean -quiet\?\)/);
    refused(() => parse('-conf'), /flag needs an argument: -conf/);
  });
});

describe('help and manual', () => {
  for (const verb of verbNames) {
    test(`${verb}: both name every option, and help keeps to 100 columns`, async () => {
      const usage = await loadUsage(verb);
      const summary = verbSummaries.get(verb) ?? '';
      const help = helpText('ndots', verb, summary, usage);
      for (const line of help.split('\n')) assert.ok(line.length <= 100, line);
      const words = (text: string): string => text.replaceAll(' \\\n', ' ').replaceAll(/\s+/g, ' ');
      const wide = helpText('kubectl ndots', verb, summary, usage, 100);
      for (const columns of [40, 60, 89, 90, 100]) {
        const narrow = helpText('kubectl ndots', verb, summary, usage, columns);
        for (const line of narrow.split('\n'))
          // Single words are never broken.
          assert.ok(line.length <= columns || !line.trim().includes(' '), line);
        assert.equal(words(narrow), words(wide));
      }
      const page = manualPage({ verb, summary, usage, version: '1', date: '2026-01-01' });
      for (const { names, help: about, group: title } of Object.values(usage.options)) {
        assert.notEqual(about, '', names.join());
        for (const name of names) {
          assert.ok(page.includes(name.replaceAll('-', '\\-')), `${name} in the manual`);
          if (usage.brief?.includes(title) !== true) assert.ok(help.includes(name), name);
        }
      }
    });

    test(`${verb}: no name stands for two options`, async () => {
      const names = Object.values((await loadUsage(verb)).options).flatMap((each) => each.names);
      assert.deepEqual(names, [...new Set(names)]);
    });
  }

  for (const verb of ['trace', 'rollout'] as const)
    test(`docs/${verb}.md names the options of ${verb}, and no others`, async () => {
      const page = readFileSync(`docs/${verb}.md`, 'utf8');
      const options = Object.values((await loadUsage(verb)).options).filter(
        ({ names }) => !/colou?r/.test(names.join()),
      );
      for (const { names } of options)
        for (const name of names.slice(0, 1)) assert.ok(page.includes(`\`${name}`), name);
      const known = new Set(options.flatMap(({ names }) => names));
      for (const [row, cell = '', , value = ''] of page.matchAll(
        /^\| (`-[^|]*) \|([^|]*)\|([^|]*)\|$/gm,
      )) {
        const named = cell.match(/(?<=`|, )--?[a-z][a-z-]*/g) ?? [];
        for (const name of named) assert.ok(known.has(name), `${name} in ${row}`);
        const { help } = options.find(({ names }) => names.includes(named.at(-1)!))!;
        const byDefault = /\(([^();]+?)(?:, as in Kubernetes)?\)$/.exec(help)?.[1] ?? '';
        assert.equal(value.trim(), byDefault, row);
      }
    });

  test('a kubectl plugin shows its name as kubectl ndots', async () => {
    const help = helpText('kubectl ndots', 'trace', '', await loadUsage('trace'));
    assert.match(help, /^Usage: kubectl ndots trace NAME/m);
    assert.match(help, /^ {2}kubectl ndots trace redis\.cache/m);
  });
});

describe('an option that needs another one', () => {
  /** Values are not checked; any word is valid. */
  const anyWord = (table: OptionTable): OptionTable =>
    Object.fromEntries(
      Object.entries(table).map(([key, option]) => [
        key,
        { ...option, value: option.value && { ...option.value, read: (given: string) => given } },
      ]),
    );
  const given = (name: string, { value }: Option): string[] =>
    value === null ? [name] : [name, 'x'];

  for (const verb of verbNames)
    test(`is a usage error alone: ${verb}`, async () => {
      const { options, style, words, synopsis } = await loadUsage(verb);
      const table = anyWord(options);
      const spelled = new Map(
        Object.values(options).flatMap((option) => option.names.map((name) => [name, option])),
      );
      const known = `${synopsis} ${Array.isArray(words?.words) ? words.words.join(' ') : ''}`;
      for (const option of Object.values(options)) {
        for (const [heading] of option.group.matchAll(/--[a-z-]+/g))
          assert.ok(
            option.names.includes(heading) || option.beside?.includes(heading),
            `${option.names.join(' ')} stands under "${option.group}"`,
          );
        if (option.beside === undefined) continue;
        for (const name of option.names) {
          const alone = given(name, option);
          refused(() => parseOptions(table, alone, style), / needs /);
          for (const other of option.beside) {
            const there = spelled.get(other);
            if (there === undefined) assert.match(known, new RegExp(`\\b${other}\\b`));
            parseOptions(table, [...alone, ...(there ? given(other, there) : [other])], style);
          }
        }
      }
    });
});
