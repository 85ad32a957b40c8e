import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { isIP } from 'node:net';
import { dirname, join, normalize } from 'node:path';
import { describe, test } from 'node:test';
import { parse, type Token } from 'acorn';
import { analyse } from 'scslre';
import { decidingNumbers } from './kit/deciding-numbers.ts';
import { longFunctions } from './kit/long-functions.ts';
import { sourceFacts, type SourceFacts } from './kit/source.ts';

const sources = globSync('src/**/*.ts').toSorted();
const texts = new Map(sources.map((file) => [file, readFileSync(file, 'utf8')]));
/** `server` in `src/server/wire/name.ts`. */
const wing = (file: string): string => file.split('/')[1]!;
/** `wire` in `src/server/wire/name.ts`. */
const room = (file: string): string => file.split('/')[2]!;

/** The import table in ARCHITECTURE.md. Maps a room to the rooms that it may import, or to null for all. */
function importTable(): ReadonlyMap<string, ReadonlySet<string> | null> {
  const page = readFileSync('ARCHITECTURE.md', 'utf8');
  const rows = [...page.matchAll(/^\| (?:`\w+` )?\| `(\w+)` \| ([^|]*) \|/gm)];
  return new Map(
    rows.map(([, name, list]) => [
      name!,
      list === 'every room'
        ? null
        : new Set([...list!.matchAll(/`(\w+)`/g)].map(([, other]) => other!)),
    ]),
  );
}

/** The wings that a wing may import, including itself. */
const wings: ReadonlyMap<string, readonly string[]> = new Map([
  ['server', ['server']],
  ['tools', ['tools', 'server']],
  ['addons', ['addons', 'tools', 'server']],
  ['faces', ['faces', 'addons', 'tools', 'server']],
]);

/** The modules that a file imports, including for types. */
function imports(file: string): readonly string[] {
  const text = texts.get(file)!;
  return [
    /^(?:import|export)\s[^;'"]*?\bfrom\s+'([^']+)'/gm,
    /^import\s+'([^']+)'/gm,
    /\bimport\(\s*'([^']+)'/g,
  ].flatMap((pattern) => [...text.matchAll(pattern)].map(([, path]) => path!));
}

const FUNCTION_LINES_MAX = 70;
/** Functions that are longer, by file. This list may only shrink. */
const longOnes: readonly (readonly [file: string, name: string])[] = [
  ['src/addons/webhook/policy.ts', 'policyObjects'],
  ['src/faces/cli/capture/capture-output.ts', 'captureOutputs'],
  ['src/faces/cli/check/check-serve-kuberhealthy.ts', 'serveKuberhealthy'],
  ['src/faces/cli/lab/lab-up.ts', 'up'],
  ['src/faces/cli/node-cache/node-cache.ts', 'around'],
  ['src/faces/cli/plan/plan-names.ts', 'readNames'],
  ['src/faces/cli/serve/serve.ts', 'serveCorefile'],
  ['src/faces/console/now-page.ts', 'nowPage'],
  ['src/server/kube/api/client.ts', 'apiClient'],
  ['src/server/plugins/cache/cache-counters.ts', 'constructor'],
  ['src/server/plugins/forward/forward-counters.ts', 'constructor'],
  ['src/server/plugins/forward/forward.ts', 'control'],
  ['src/server/plugins/hosts/answers.ts', 'answerer'],
  ['src/server/plugins/kubernetes/worker/outside.ts', 'outsideOf'],
  ['src/server/plugins/prometheus/web-config.ts', 'readWebConfig'],
  ['src/server/plugins/secondary/secondary.ts', 'control'],
  ['src/server/plugins/transfer/transfer.ts', 'setup'],
  ['src/server/runtime/socket-programs.ts', 'onEgress'],
  ['src/server/zone/changed-zone.ts', 'spliced'],
  ['src/server/zone/zone-file.ts', 'readingZoneFile'],
  ['src/tools/capture/filter.ts', 'testOf'],
  ['src/tools/capture/pair/pairing.ts', 'reply'],
  ['src/tools/lab/proxy-rules/nftables.ts', 'writeTop'],
  ['src/tools/lab/rehearsal.ts', 'played'],
  ['src/tools/lab/scripted-server.ts', 'serveScript'],
  ['src/tools/pods/cluster-pods.ts', 'clusterPods'],
];

const isTest = (file: string): boolean => file.endsWith('.test.ts');
const running = sources.filter((file) => !isTest(file));
/** The files around the program: kits for tests and benchmarks, and tools. */
const around = new Map(
  globSync(['test/kit/**/*.ts', 'bench/kit/*.ts', 'tools/**/*.ts'])
    .filter((file) => !isTest(file))
    .toSorted()
    .map((file) => [file, readFileSync(file, 'utf8')]),
);
/** All files whose first line people read. */
const described = [...running.map((file) => [file, texts.get(file)!] as const), ...around];
const facts = new Map(running.map((file) => [file, sourceFacts(texts.get(file)!)]));

/** Functions of `process` that load native code. */
const native = /^(?:dlopen|binding|_linkedBinding)$/;

/** The ways in which a file loads native code, or modules that are only known at run time. */
function foreignLoads({ loads }: SourceFacts): string[] {
  return loads
    .filter(
      ({ module, how }) =>
        native.test(how) ||
        (module === null && how !== 'getBuiltinModule') ||
        /^(?:koffi|(?:node:)?ffi\b.*|.*\.node)$/.test(module ?? ''),
    )
    .map(({ module, how, line }) => `${line}: ${how}${module === null ? '' : ` of ${module}`}`);
}

/** Language globals that give no access to time, randomness or I/O. */
const language =
  /^(?:undefined|NaN|Infinity|Date\.(?:parse|UTC)|new Date|Math\.(?!random$)\w+|(?:new )?(?:Object|Array|String|Number|BigInt|Boolean|Symbol|Map|Set|WeakMap|WeakSet|Promise|JSON|Reflect|RegExp|Iterator|Buffer|DataView|ArrayBuffer|SharedArrayBuffer|(?:Ui|I)nt(?:8|16|32)Array|Big(?:Ui|I)nt64Array|Float64Array|TextEncoder|TextDecoder|\w*Error)(?:\.\w+)?|parseInt|parseFloat|isNaN|structuredClone|queueMicrotask|(?:en|de)codeURIComponent)$/;
/** Globals that provide a clock, randomness, or access to other processes. */
const world =
  /^(?:new )?(?:Date(?:\.now)?$|performance|set(?:Timeout|Interval)|process|console|fetch|crypto|Math\.random|Worker|WebSocket|EventSource|navigator|Atomics\.wait)/;
/** Modules whose functions have no side effects, although others in their package do. */
const pureModules: ReadonlySet<string> = new Set(['node:path', 'node:url', 'node:net']);

/** Uses of clocks, randomness and I/O. */
function impurities(
  { loads, globals }: SourceFacts,
  isPure: (name: string) => boolean,
  modules: ReadonlySet<string>,
): string[] {
  return [
    ...globals.filter(({ name }) => !isPure(name)).map(({ name, line }) => `${line}: ${name}`),
    ...loads
      .filter(({ module }) => module === null || (!module.startsWith('.') && !modules.has(module)))
      .map(({ module, how, line }) => `${line}: ${how} of ${module}`),
  ];
}

/** Files whose values are used by these files, directly or indirectly. */
function reached(from: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (file: string): void => {
    if (found.has(file)) return;
    found.add(file);
    for (const { module } of facts.get(file)?.loads ?? [])
      if (module?.startsWith('.')) visit(normalize(join(dirname(file), module)));
  };
  for (const file of from) visit(file);
  return found;
}

/** Regular expressions that may backtrack, or that are built at run time. */
function slowExpressions(file: string, text: string): string[] {
  if (isTest(file)) return [];
  const tokens: (Token & { readonly value?: unknown })[] = [];
  parse(stripTypeScriptTypes(text), {
    ecmaVersion: 'latest',
    sourceType: 'module',
    locations: true,
    onToken: tokens,
  });
  return tokens.flatMap((token, index) => {
    const [before, next, argument] = [-1, 1, 2].map((step) => tokens[index + step]?.type.label);
    const where = `${file}:${token.loc?.start.line}`;
    if (token.type.label === 'regexp') {
      const { pattern, flags } = token.value as {
        readonly pattern: string;
        readonly flags: string;
      };
      const { reports } = analyse(new RegExp(pattern, flags));
      return reports.length === 0 ? [] : [`${where}: /${pattern}/${flags} is not linear`];
    }
    const word = String(token.value);
    if (word === 'RegExp' && next === '(') return [`${where}: an expression made of texts`];
    const isImplied =
      before === '.' && next === '(' && ['match', 'matchAll', 'search'].includes(word);
    return isImplied && argument !== 'regexp' && argument !== 'name'
      ? [`${where}: ${word} makes an expression of a text`]
      : [];
  });
}

function linesOfCode(text: string): number {
  let isComment = false;
  let count = 0;
  for (const line of text.split('\n')) {
    const words = line.trim();
    if (words.startsWith('/*')) isComment = true;
    if (words !== '' && !isComment && !words.startsWith('//')) count++;
    if (isComment && words.endsWith('*/')) isComment = false;
  }
  return count;
}

/**
 * True if a file starts by stating its subject, either in a separate docstring or in the docstring of its main export.
 * (A limit's docstring does not count.) Imports may come first.
 */
function hasHeadLine(text: string): boolean {
  const body = text.replace(/^(?:import\b[^;]*;\s*)+/, '');
  const next = /^\/\*\*(?:[^*]|\*(?!\/))*\*\/\n(.*)/.exec(body)?.[1];
  return (
    next !== undefined && /^(?:$|import |\/\*\*|export (?!const \w+(?:Limit|_[A-Z]+)\b))/.test(next)
  );
}

describe('the house', () => {
  const table = importTable();

  test('every room is in the table of ARCHITECTURE.md', () => {
    const rooms = new Set(sources.map(room));
    for (const name of rooms) assert.ok(table.has(name), `${name} has no row in the table`);
  });

  test('a room imports only what the table of ARCHITECTURE.md allows', () => {
    const broken: string[] = [];
    for (const file of sources) {
      for (const path of imports(file)) {
        if (!path.startsWith('.')) continue;
        const target = normalize(join(dirname(file), path));
        if (!target.startsWith('src/')) continue; // e.g. package.json
        const [from, to] = [room(file), room(target)];
        const allowed = table.get(from);
        if (from !== to && allowed !== null && !allowed?.has(to))
          broken.push(`${file} imports ${target}`);
        if (!wings.get(wing(file))?.includes(wing(target)))
          broken.push(`${file} imports ${target}, which is in a wing above`);
        if (
          from === 'plugins' &&
          to === 'plugins' &&
          file !== 'src/server/plugins/order.ts' &&
          !isTest(file)
        ) {
          const [a, b] = [file.split('/')[3], target.split('/')[3]];
          if (a !== b) broken.push(`${file} imports the plugin ${b}: plugins meet through ports`);
        }
      }
    }
    assert.deepEqual(broken, []);
  });

  test('a finding imports no other finding, and the observing part of doctor imports no finding', () => {
    const doctor = 'src/tools/doctor/';
    const ofFindings =
      /^src\/tools\/doctor\/(?:observe\/|cluster\/|thresholds\/|texts\.ts|severity\.ts|findings\/finding\.ts)/;
    const ofAnalyses = /^src\/tools\/doctor\/(?:observe\/|thresholds\/|texts\.ts|severity\.ts)/;
    const broken = running.flatMap((file) => {
      const isTable = /\/findings\/(?:finding|table)\.ts$/.test(file);
      const allowed = file.startsWith(`${doctor}findings/`)
        ? ofFindings
        : file.startsWith(`${doctor}observe/`)
          ? ofAnalyses
          : null;
      if (allowed === null || isTable) return [];
      return imports(file).flatMap((path) => {
        const target = normalize(join(dirname(file), path));
        return target.startsWith(doctor) && !allowed.test(target)
          ? [`${file} imports ${target}`]
          : [];
      });
    });
    assert.deepEqual(broken, []);
  });

  test('findings, observations and the examination of a cluster decide by no number of their own', () => {
    const broken = running
      .filter((file) => /^src\/tools\/doctor\/(?:findings|observe|cluster)\//.test(file))
      .flatMap((file) => decidingNumbers(texts.get(file)!).map((each) => `${file}:${each}`));
    assert.deepEqual(broken, [], 'thresholds are in src/tools/doctor/thresholds/');
  });

  test('a finding declares no number, not even one that decides nothing', () => {
    const declared = /^(?:export )?const [A-Z]\w*(?:: \w+)? = (?:-?[\d.]|\{[^}]*: -?[\d.])[^;]*/gm;
    const broken = running
      .filter((file) => file.startsWith('src/tools/doctor/findings/'))
      .flatMap((file) =>
        [...texts.get(file)!.matchAll(declared)].map(([text]) => `${file}: ${text.trim()}`),
      );
    assert.deepEqual(broken, [], 'thresholds are in src/tools/doctor/thresholds/');
  });

  test('no function is longer than 70 lines, but for known ones', () => {
    const found = running.flatMap((file) =>
      longFunctions(texts.get(file)!, FUNCTION_LINES_MAX).map(({ name }) => `${file} ${name}`),
    );
    const known = longOnes.map((each) => each.join(' '));
    assert.deepEqual(
      found.filter((each) => !known.includes(each)),
      [],
      'split these by idea: the search for facts in one function, the text in another',
    );
    assert.deepEqual(
      known.filter((each) => !found.includes(each)),
      [],
      'these are short now: remove them from the list',
    );
  });

  test('no wing is larger than its budget', () => {
    const { budgets } = JSON.parse(readFileSync('tools/budgets.json', 'utf8')) as {
      readonly budgets: Readonly<Record<string, number>>;
    };
    const sizes = Object.fromEntries(
      [...Map.groupBy(running, wing)].map(([name, files]) => [
        name,
        files.map((file) => linesOfCode(texts.get(file)!)).reduce((a, b) => a + b, 0),
      ]),
    );
    assert.deepEqual(Object.keys(sizes).toSorted(), Object.keys(budgets).toSorted());
    for (const [name, size] of Object.entries(sizes))
      assert.ok(
        size <= budgets[name]!,
        `src/${name} has ${size} lines of code, and its budget in tools/budgets.json is ${budgets[name]}: remove something, or raise the budget in a commit of its own that says why`,
      );
  });

  test('the server names no plugin', () => {
    // Words with a fixed meaning: a server part, an address scheme, an automatic choice.
    const words = new Set(['log', 'tls', 'auto']);
    const plugins = globSync('src/server/plugins/*/').map((directory) => directory.split('/')[3]!);
    const names = new Set(plugins.filter((name) => !words.has(name)));
    const found = running
      .filter((file) => room(file) === 'engine')
      .flatMap((file) =>
        [
          ...texts
            .get(file)!
            .replace(/\/\*[^]*?\*\/|\/\/.*/g, '')
            .matchAll(/'(\w+)'/g),
        ]
          .filter(([, word]) => names.has(word!))
          .map(([literal]) => `${file}: ${literal}`),
      );
    assert.deepEqual(found, []);
  });

  test('two directories of a room never import each other, not even indirectly', () => {
    const below = new Map<string, Set<string>>();
    for (const file of running) {
      for (const path of imports(file)) {
        const [from, to] = [dirname(file), dirname(normalize(join(dirname(file), path)))];
        // Files in the room itself may combine the room's directories, and the directories may import those files.
        const apart = [from, to].every((directory) => directory.split('/').length > 3);
        if (!apart || from === to || room(`${from}/`) !== room(`${to}/`)) continue;
        below.set(from, (below.get(from) ?? new Set()).add(to));
      }
    }
    const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
      [...(below.get(from) ?? [])].some((next) => {
        if (next === to) return true;
        if (seen.has(next)) return false;
        return reaches(next, to, seen.add(next));
      });
    assert.deepEqual(
      [...below.keys()].filter((directory) => reaches(directory, directory)),
      [],
    );
  });

  test('only runtime loads native code, in any way', () => {
    const exempt = ['src/server/runtime/koffi.ts', 'src/server/engine/worker/worker-thread.ts'];
    const found = [...facts]
      .filter(([file]) => !exempt.includes(file))
      .flatMap(([file, each]) => foreignLoads(each).map((load) => `${file}:${load}`));
    assert.deepEqual(found, []);
    // The only module that a worker loads at startup: the table of plugins.
    assert.equal(foreignLoads(facts.get('src/server/engine/worker/worker-thread.ts')!).length, 1);
  });

  test('doctor opens no file and no socket: its world is handed in', () => {
    const found = running
      .filter((file) => room(file) === 'doctor')
      .flatMap((file) =>
        [...texts.get(file)!.matchAll(/from '(node:(?:fs|net|tls|dns|dgram|http)[^']*)'/g)].map(
          ([, module]) => `${file}: ${module!}`,
        ),
      );
    assert.deepEqual(found, []);
  });

  test('wire, corefile and resolver have no clock, no chance, no input and no output', () => {
    const pure = running.filter((file) => ['wire', 'corefile', 'resolver'].includes(room(file)));
    const found = pure.flatMap((file) =>
      impurities(facts.get(file)!, (name) => language.test(name), new Set(['node:path'])).map(
        (use) => `${file}:${use}`,
      ),
    );
    // They do not reach any through base either. Modules in builtins.ts are loaded where they are called.
    for (const file of reached(pure)) {
      if (pure.includes(file) || file === 'src/server/base/builtins.ts') continue;
      const uses = impurities(facts.get(file)!, (name) => !world.test(name), pureModules);
      found.push(...uses.map((use) => `${file}:${use}`));
    }
    for (const file of pure) {
      for (const [whole, part] of texts.get(file)!.matchAll(/\bbuiltins\.(\w+)\(/g))
        if (part !== 'crypto') found.push(`${file}: ${whole}`);
    }
    assert.deepEqual(found, []);
  });

  test('the arguments, the environment and the streams of the process belong to the command line', () => {
    const found = [...facts].flatMap(([file, { globals }]) =>
      globals
        .filter(({ name }) => /^process\.(?:argv|env|std\w+|chdir|kill|exitCode)$/.test(name))
        .map(({ name, line }) => `${file}:${line}: ${name}`)
        .filter(() => room(file) !== 'cli'),
    );
    // In a pod, these variables provide the API server's address.
    assert.deepEqual(
      found.filter((use) => !use.startsWith('src/server/kube/api/connection.ts:')),
      [],
    );
  });

  // Clients, upstreams and files choose the texts. A Corefile's patterns use base/pattern.ts, which runs in linear
  // time.
  test('no expression of the runtime can take more than linear time', () => {
    assert.deepEqual(
      [...texts].flatMap(([file, text]) => slowExpressions(file, text)),
      [],
    );
  });

  test('a source that is named by its path, as threads are, is there', () => {
    for (const file of running) {
      for (const [, path] of texts.get(file)!.matchAll(/'(\.{1,2}\/[\w./-]+\.[jt]s)'/g)) {
        const target = normalize(join(dirname(file), path!.replace(/js$/, 'ts')));
        assert.ok(texts.has(target), `${file} names ${path}`);
      }
    }
  });

  test('no two files export a type or a class of one name', () => {
    const owners = Map.groupBy(
      running.flatMap((file) =>
        [
          ...texts.get(file)!.matchAll(/^export (?:abstract )?(?:interface|type|class) (\w+)/gm),
        ].map(([, name]) => ({ name: name!, file })),
      ),
      ({ name }) => name,
    );
    assert.deepEqual(
      [...owners.values()]
        .filter((all) => all.length > 1)
        .map((all) => all.map(({ name, file }) => `${name}: ${file}`)),
      [],
    );
  });

  test('every file begins with a line about its subject', () => {
    assert.deepEqual(
      described.filter(([, text]) => !hasHeadLine(text)).map(([file]) => file),
      [],
    );
  });

  test('no file has a catch-all name', () => {
    for (const file of sources)
      assert.doesNotMatch(file, /\/(utils?|common|helpers?|types|index)\.ts$/);
  });

  test('no source file is longer than 600 lines', () => {
    for (const [file, text] of texts) {
      if (isTest(file)) continue;
      const lines = text.split('\n').length;
      assert.ok(lines <= 600, `${file}: ${lines} lines`);
    }
  });

  test('no TODO is left', () => {
    for (const [file, text] of texts) assert.doesNotMatch(text, /\b(TODO|FIXME|XXX|HACK)\b/, file);
  });

  test('every page has one title', () => {
    const pages = globSync(['*.md', 'docs/**/*.md', 'src/**/*.md']);
    for (const page of pages) {
      const text = readFileSync(page, 'utf8').replace(/^(```|~~~)[^]*?^\1/gm, '');
      const titles = text.match(/^# .+$/gm) ?? [];
      assert.equal(titles.length, 1, `${page}: ${titles.length} titles`);
    }
  });

  test('the lock file holds every package that one of its packages names, for all platforms', () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
      packages: Record<
        string,
        Partial<Record<'dependencies' | 'optionalDependencies', Record<string, string>>>
      >;
    };
    const missing = Object.entries(packages).flatMap(
      ([at, { dependencies, optionalDependencies }]) =>
        Object.keys({ ...dependencies, ...optionalDependencies })
          .filter(
            (name) =>
              !(`node_modules/${name}` in packages) && !(`${at}/node_modules/${name}` in packages),
          )
          .map((name) => `${at} names ${name}`),
    );
    assert.deepEqual(missing, []);
  });

  test('the top directory has pages and settings, and no source', (t) => {
    const files = filesOfGit();
    if (files === null) return t.skip('not a checkout of git');
    const others = files.filter(
      (file) =>
        !file.includes('/') &&
        !/^(?:\.|[A-Z]+(?:\.md)?$|package(?:-lock)?\.json$|tsconfig\.json$)/.test(file),
    );
    assert.deepEqual(others, []);
  });

  test('no file names a registry, an unknown host, or a directory of a machine', (t) => {
    const files = filesOfGit();
    if (files === null) return t.skip('not a checkout of git');
    const found: string[] = [];
    for (const file of files) {
      if (/\.(?:bin|sum)$/.test(file)) continue;
      const text = readFileSync(file, 'utf8');
      for (const [, host = ''] of text.matchAll(/\bhttps?:\/\/\[?([\w.-]+)/g))
        if (!isKnownHost(host, file)) found.push(`${file}: ${host}`);
      for (const [path] of text.matchAll(/(?<![\w.~$}/-])\/(?:work|root|home|Users)\/[\w.-]+/g))
        found.push(`${file}: ${path}`);
    }
    assert.deepEqual(found, []);
    assert.doesNotMatch(readFileSync('.npmrc', 'utf8'), /registry *=/);
  });

  test('the lock file names no registry', () => {
    assert.doesNotMatch(readFileSync('package-lock.json', 'utf8'), /"resolved"/);
  });
});

/** Documentation hosts, and examples from standards. */
const knownHosts: ReadonlySet<string> = new Set([
  'coredns.io',
  'docs.oasis-open.org',
  'github.com',
  'json-schema.org',
  'json.schemastore.org',
  'keepachangelog.com',
  'ndots.dev',
  'pkg.go.dev',
  'www.apache.org',
  // The SVG namespace.
  'www.w3.org',
  // The name in an incident.
  'api.twilio.com',
]);

function isKnownHost(host: string, file: string): boolean {
  if (file.endsWith('package-lock.json'))
    // The address for support requests.
    return [
      ...['liberapay.com', 'opencollective.com', 'github.com', 'tidelift.com'],
      ...['feross.org', 'paulmillr.com', 'www.patreon.com'],
    ].includes(host);
  const name = host.replace(/\.$/, '');
  return (
    isIP(name) !== 0 ||
    knownHosts.has(name) ||
    !name.includes('.') ||
    /(?:^|\.)(?:example(?:\.com)?|invalid|test|host|svc)$/.test(name)
  );
}

/** A measured time: CPU time, or a duration. */
const measuredTime =
  /\b(?:cpuUsage|threadCpuUsage|hrtime)\b|\b(?:performance|Date)\.now\(\) - |- (?:performance|Date)\.now\(\)/;

test('no plain test measures time: test/kit/growth.ts compares costs, and bench/ has the figures', () => {
  const found = globSync('{src,test,tools,bench}/**/*.test.ts')
    .filter(
      (file) => !/\.(?:long|cluster|node)\.test\.ts$/.test(file) && file !== 'test/tidy.test.ts',
    )
    .flatMap((file) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .flatMap((line, at) => (measuredTime.test(line) ? [`${file}:${at + 1}: ${line}`] : [])),
    );
  assert.deepEqual(found, []);
});

describe('the rules of the house see', () => {
  for (const [text, name] of [
    ['function long() {\n\n}', 'long'],
    ['const long = () => {\n\n};', 'long'],
    ['const kind = { long() {\n\n} };', 'long'],
    ['class A {\n  #long() {\n\n}\n}', 'long'],
    ['call(() => {\n\n});', ''],
  ] as const)
    test(`the long function in ${JSON.stringify(text)}`, () => {
      assert.deepEqual(longFunctions(text, 2), [{ name, lines: 3 }]);
      assert.deepEqual(longFunctions(text, 3), []);
    });

  for (const [text, expected] of [
    ['const isMuch = n >= 4 ? 1 : 2;', ['1: 4']],
    ['const isMuch = lost > rate * 0.3;', ['1: 0.3']],
    ['const isMuch = n < Math.max(least, 3);', ['1: 3']],
    ['const isFew = z < -3;', ['1: 3']],
    ['const FEW = 3;\nconst isFew = n < FEW;', ['1: FEW = 3']],
    ['const RULE = { lost: 3 };\nconst isFew = n < RULE.lost;', ['1: RULE = { lost: 3 }']],
    ['const CHANCE_MAX = 0.1;', ['1: CHANCE_MAX = 0.1']],
    ['const NEW_MS = 60_000;', ['1: NEW_MS = 60_000']],
    ['const late = server.quantile(0.05);', ['1: 0.05']],
    ['const ROWS_MAX = 500;\nconst isFull = rows.size >= ROWS_MAX;', []],
    ['const isLong = bytes[0] >= 0xc0 && n > 1;', []],
    ['for (let i = 0; i < 3; i++) at += 4;', []],
    ['const PORT = 53;\nconst isDns = port === PORT;', []],
  ] as const)
    test(`the numbers that decide in ${JSON.stringify(text)}`, () => {
      assert.deepEqual(decidingNumbers(text), expected);
    });

  for (const text of [
    'assert.ok(performance.now() - begun < 2000);',
    'const ms = Date.now() - begun;',
    'const { user } = process.cpuUsage(before);',
    'assert.ok(end - performance.now() > 5);',
  ])
    test(`a measured time in ${text}`, () => assert.match(text, measuredTime));

  test('no measured time in a limit of waiting', () =>
    assert.doesNotMatch('while (performance.now() < end) await pause(5);', measuredTime));

  const loads = (text: string): string[] => foreignLoads(sourceFacts(text));

  for (const text of [
    `import koffi from 'koffi';`,
    `import * as koffi from 'koffi';`,
    `export { load } from 'koffi';`,
    `const koffi = await import('koffi');`,
    'const koffi = await import(`koffi`);',
    `const koffi = await import('kof' + 'fi');`,
    `import { createRequire } from 'node:module'; createRequire(import.meta.url)('koffi');`,
    `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url); require('koffi');`,
    `require('./build/addon.node');`,
    `import ffi from 'node:ffi';`,
    `process.getBuiltinModule('node:ffi');`,
    `process.dlopen(module, 'x');`,
    `process['dlopen'](module, 'x');`,
    `const { dlopen } = process;`,
    `process.binding('tcp_wrap');`,
    `process._linkedBinding('x');`,
  ])
    test(`native code in ${text}`, () => assert.equal(loads(text).length, 1));

  for (const text of [
    `import type * as Koffi from 'koffi';`,
    `line.binding.warning('x');`,
    `const hint = 'install koffi';`,
  ])
    test(`none in ${text}`, () => assert.deepEqual(loads(text), []));

  const uses = (text: string): string[] =>
    impurities(sourceFacts(text), (name) => language.test(name), new Set());

  for (const text of [
    'const now = Date.now();',
    'const now = new Date();',
    'const D = Date;',
    'performance.now();',
    'setTimeout(() => {}, 1);',
    'setInterval(() => {}, 1);',
    'globalThis.setTimeout(() => {}, 1);',
    'Math.random();',
    'process.hrtime();',
    'console.log(1);',
    `await fetch('x');`,
    `import 'node:fs';`,
    `import { connect } from 'node:net';`,
    `const fs = await import('node:fs');`,
  ])
    test(`the world in ${text}`, () => assert.notDeepEqual(uses(text), []));

  for (const text of [
    'const then = new Date(0);',
    'function f(clock) { return clock.setTimeout; }',
    'const performance = 1; performance.toFixed();',
    `import type { Socket } from 'node:net';`,
  ])
    test(`none in ${text}`, () => assert.deepEqual(uses(text), []));

  for (const text of [
    `import { a } from 'a';\nexport const b = a;\n`,
    `import { a } from 'a';\n\n/** Milliseconds. */\nconst WAIT_MS = a;\n`,
    '/** Bytes. */\nexport const BYTES_MAX = 1;\n',
  ])
    test(`no head line in ${JSON.stringify(text)}`, () => assert.ok(!hasHeadLine(text)));

  for (const text of [
    `/** Letters. */\nimport { a } from 'a';\n`,
    '/** Letters. */\n\nconst a = 1;\n',
    `import { a } from 'a';\n\n/** The letter B. */\nexport const b = a;\n`,
  ])
    test(`a head line in ${JSON.stringify(text)}`, () => assert.ok(hasHeadLine(text)));
});

/** All committed files, or null outside a git checkout. */
function filesOfGit(): readonly string[] | null {
  const { status, stdout } = spawnSync('git', ['ls-files', '-z'], { encoding: 'utf8' });
  return status === 0 ? stdout.split('\0').filter((file) => file !== '') : null;
}
