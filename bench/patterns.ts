/**
 * The cost of a pattern for queries that it does not match: `node bench/patterns.ts`. Names are passed through
 * `rewrite`'s handler and `view`'s filter. In the same run, they are passed to Go's regexp, which CoreDNS uses.
 * Decoding the query and printing its name, which the Go program does not do, is measured separately and subtracted.
 */
import { systemClock } from '../src/server/base/clock.ts';
import { makeLog } from '../src/server/base/log.ts';
import { seededRandom } from '../src/server/base/random.ts';
import { parseCorefile } from '../src/server/corefile/parse.ts';
import { bindDirective } from '../src/server/corefile/syntax.ts';
import { rewrite } from '../src/server/plugins/rewrite/rewrite.ts';
import { view } from '../src/server/plugins/view/view.ts';
import type { Plugin, WorkerContext } from '../src/server/engine/contract/plugin.ts';
import { parseName } from '../src/server/wire/name.ts';
import { makeQuery, Query } from '../src/server/transport/query.ts';
import { failure } from '../src/server/wire/reply.ts';
import { MessageWriter } from '../src/server/wire/writer.ts';
import { hasProgram } from '../test/kit/real-resolver.ts';
import { timeGo } from '../test/patterns/ask-go.ts';

/** None of these matches any of the names below. */
const patterns: readonly string[] = [
  '^www[0-9]*\\.',
  '(?i)^WWW[0-9]*\\.',
  '(.*)-(us-west-1)\\.example\\.org',
  '^([^.]+)\\.([^.]+)\\.svc\\.cluster\\.test\\.$',
  '^ip-(?P<a>11)-(?P<b>[0-9]*)-(?P<c>[0-9]*)-(?P<d>[0-9]*)[.]dc[.]example[.]$',
  '(^|[.])ip-(?P<a>[0-9]*)-(?P<b>[0-9]*)-(?P<c>[0-9]*)-(?P<d>[0-9]*)[.]dc[.]example[.]$',
  '^(?:[^.]+\\.){4,6}internal\\.cloudapp\\.net\\.$',
  '\\.(lan|home|corp|intranet)\\.$',
  '^([a-z]([-a-z0-9]{0,61}[a-z])?\\.)+$',
];
const names = Array.from({ length: 384 }, (_, index) => [
  `web${index}.shop.svc.cluster.local.`,
  `api.twilio.com.ns${index}.svc.cluster.local.`,
  `10-244-${index % 256}-9.ip.example.`,
  `db${index}-us-east-1.example.org.`,
  `mail${index}.example.org.`,
  `${index % 250}.0.244.10.in-addr.arpa.`,
]).map((one, index) => one[index % one.length]!);
const messages = names.map((name) => {
  const { bytes, start, end } = makeQuery(parseName(name), 1);
  return bytes.slice(start, end);
});

/** A step in handling a query. Returns true if it handled the query. */
type Step = (query: Query) => boolean;

function stepOf(plugin: Plugin, lines: string): Step {
  const { corefile } = parseCorefile({
    file: 'Corefile',
    text: `. {\n ${lines}\n}`,
    dnsPort: 53,
    env: {},
    directives: [plugin.name],
    readFile: () => '',
    glob: () => [],
  });
  const { options, problems } = bindDirective(plugin.syntax, corefile.blocks[0]!.directives, {
    zones: ['.'],
  });
  if (problems.length > 0) throw problems[0]!;
  let step: Step | null = null;
  const context: Partial<WorkerContext> = {
    zones: ['.'],
    view: '',
    clock: systemClock,
    random: seededRandom(1),
    log: makeLog(() => {}),
    writer: new MessageWriter(),
    find: () => [],
    offer: () => {},
    filter: (accepts) => {
      step = accepts;
    },
  };
  const untouched = failure(0, 'bench');
  const link = plugin.setup!(options[0] as never, context as WorkerContext, () => untouched);
  return step ?? ((query) => link(query) !== untouched);
}

const query = new Query();

function nsPerQuery(step: Step, count: number): number {
  let taken = 0;
  const began = process.hrtime.bigint();
  for (let i = 0; i < count; i++) {
    const bytes = messages[i % messages.length]!;
    query.read(bytes, 0, bytes.length);
    if (step(query)) taken++;
  }
  const spent = Number(process.hrtime.bigint() - began) / count;
  if (taken > 0) throw new Error('a pattern fits a name');
  return spent;
}

const regexRule = (pattern: string): Step =>
  stepOf(rewrite, `rewrite name regex "${pattern}" a.test`);
const matching = (pattern: string): Step =>
  stepOf(view, `view v {\n expr name() matches '${pattern.replaceAll('\\', '\\\\')}'\n }`);
const steps: readonly Step[] = [
  ({ name }) => name.length === 0,
  ...patterns.flatMap((pattern) => [regexRule(pattern), matching(pattern)]),
];
const rounds = process.env['BENCH_SMOKE'] === undefined ? 40 : 1;
const least = steps.map(() => Infinity);
const go = patterns.map(() => Infinity);
const questions = patterns.map((pattern) => ({ pattern, texts: names }));
const hasGo = hasProgram('go');
for (let round = 0; round < rounds; round++) {
  steps.forEach((step, index) => {
    least[index] = Math.min(least[index]!, nsPerQuery(step, 4000));
  });
  if (!hasGo || round % 10 > 0) continue;
  timeGo(questions).forEach((ns, index) => {
    go[index] = Math.min(go[index]!, ns);
  });
}
const [ofName] = least as [number];
console.log(`${ofName.toFixed(0)} ns a query for reading it and its name; beyond that:`);
console.log('rewrite regex, view matches, Go; rewrite against Go');
patterns.forEach((pattern, index) => {
  const ofRewrite = least[1 + 2 * index]! - ofName;
  const ofView = least[2 + 2 * index]! - ofName;
  const [a, b, c] = [ofRewrite, ofView, go[index]!].map((ns) => ns.toFixed(0).padStart(6));
  console.log(`${a} ${b} ${c} ${(ofRewrite / go[index]!).toFixed(2).padStart(6)}  ${pattern}`);
});
