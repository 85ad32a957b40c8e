/** Tests the live view by reading back the terminal's screen. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, test } from 'node:test';
import { EmulatedTerminal } from '../../../../test/kit/emulated-terminal.ts';
import { SampleModel } from '../../../../test/kit/sample-views.ts';
import { VirtualClock } from '../../../server/base/virtual-clock.ts';
import type { ViewName, ViewQuery, Views } from '../../../tools/watch/view.ts';
import type { ColourDepth } from '../screen/cell-style.ts';
import { ReplayPace } from '../live/replay-pace.ts';
import type { PacketFeed } from '../live/live-feed.ts';
import { parseTopOptions } from './top-options.ts';
import { TopScreen } from './top-screen.ts';

const KEY = {
  up: '\u001b[A',
  down: '\u001b[B',
  end: '\u001b[F',
  pageDown: '\u001b[6~',
  enter: '\r',
  escape: '\u001b[27~\u001b\u001b',
  ctrlC: '\u0003',
  tab: '\t',
} as const;

describe('the pages of top', () => {
  for (const [key, title, shows] of [
    ['1', 'Now', /Queries {6}812\/s.*33\.7k, 3 waiting/],
    [
      '2',
      'Lookups',
      /! 12:03:19\.726 {2}5\.01 s answered +7 +4 +1 shop\/cart-7d4b.*api\.stripe\.com/,
    ],
    ['3', 'Clients', /shop\/cart-7d4b9c5f6b-x2x8k .*glibc 98 % +24\.3k +4100 +41 +12 +65 %/],
    ['4', 'Names', /api\.stripe\.com +answered +2050 +20\.5k +41 +0 +60 %/],
    ['5', 'Servers', /svc kube-system\/kube-dns +server +33\.7k +45 +12 +51 %/],
    ['6', 'Findings', /ongoing +critical ND3001 12:01:07 +2 min +41 +12 A and AAAA leave/],
  ] as const)
    test(`${key} shows ${title}`, async () => {
      const { terminal } = started({ columns: 120 });
      terminal.press(key);
      const lines = await terminal.screen();
      assert.match(lines.join('\n'), shows);
      assert.equal((await terminal.cell(lines[0]!.indexOf(title), 0)).characters, title[0]);
    });

  test('every page states what it omits', async () => {
    const { terminal } = started();
    for (const [key, leaves] of [
      ['1', 'left: latest, right: totals of the last 10 min, kernel lost 0'],
      ['2', '60 of 8041 lookups, kernel lost 0'],
      ['3', 'all 4 clients, kernel lost 0'],
      ['4', 'all 3 names, kernel lost 0'],
      ['5', 'all 4 servers, kernel lost 0'],
      ['6', 'all 3 findings, kernel lost 0'],
    ] as const) {
      terminal.press(key);
      const lines = await terminal.screen();
      assert.ok(lines.at(-2)!.trim().startsWith(leaves), lines.join('\n'));
    }
  });

  test('every page works in 40 columns, and no line is wider', async () => {
    const { terminal } = started({ columns: 40, rows: 20 });
    for (const [key, shows] of [
      ['1', /Queries +812\/s/],
      ['2', /! +5\.01 s answered +api\.stripe\.com/],
      ['3', /shop\/cart-7d4.*24\.3k +41/],
      ['4', /api\.stripe\.com +2050/],
      ['5', /svc kube-system\/kube-d.* +33\.7k/],
      ['6', /ND3001 A and AAAA leave/],
    ] as const) {
      terminal.press(key);
      assert.match(await terminal.text(), shows);
    }
  });

  for (const [columns, rows] of [
    [10, 3],
    [20, 5],
    [300, 80],
  ] as const)
    test(`a terminal of ${columns} × ${rows} is drawn`, async () => {
      const { terminal } = started({ columns, rows });
      for (const key of '123456?') terminal.press(key);
      assert.notEqual((await terminal.text()).trim(), '');
    });

  test('Tab goes to the next page, and from the last one to the first', async () => {
    const { terminal, model } = started();
    for (let at = 0; at < 6; at++) terminal.press(KEY.tab);
    assert.deepEqual(
      model.asked.map(({ view }) => view),
      ['now', 'lookups', 'clients', 'names', 'servers', 'findings', 'now'],
    );
    terminal.press('\u001b[Z');
    assert.equal(model.asked.at(-1)!.view, 'findings');
  });

  test('queries the model every second, and writes nothing while nothing changes', async () => {
    const { terminal, model, clock } = started();
    terminal.takeWritten();
    await clock.advance(3000);
    assert.equal(model.asked.length, 4);
    assert.equal(terminal.takeWritten(), '');
  });

  test('redraws after a size change', async () => {
    const { terminal } = started();
    terminal.resize(60, 12);
    const lines = await terminal.screen();
    assert.equal(lines.length, 12);
    assert.match(lines.at(-1)!, /Enter details/);
  });
});

describe('rows', () => {
  test('a lookup expands to its queries, each with a reason', async () => {
    const { terminal } = started({ columns: 110 });
    terminal.press('2');
    terminal.press(KEY.down);
    terminal.press(KEY.enter);
    const text = await terminal.text();
    assert.match(text, /answered after 5\.01 s: 7 queries, 4 for names that do not exist, 1 lost/);
    assert.match(
      text,
      /Client +shop\/cart-7d4b9c5f6b-x2x8k \(deploy\/cart, 10\.244\.1\.7, on node7\)/,
    );
    assert.match(text, /Server +svc kube-system\/kube-dns ⇒ kube-system\/coredns/);
    assert.match(text, /NXDOMAIN +api\.stripe\.com\.svc\.cluster\.local\. +search path/);
    assert.match(text, /no reply +api\.stripe\.com\. +other family/);
    assert.match(text, /no record +api\.stripe\.com\. +no reply, try 2/);
    terminal.press(KEY.escape);
    assert.match(await terminal.text(), /RESULT/);
  });

  test('a reload shows the answers that it changed', async () => {
    const { terminal } = started({ columns: 110, rows: 60 });
    assert.match(await terminal.text(), /reload +pod kube-system\/coredns-1 .*: 1 answer changed/);
    for (let at = 0; at < 30; at++) {
      if (/serves a new configuration/.test((await selectedLine(terminal)) ?? '')) break;
      terminal.press(KEY.down);
    }
    terminal.press(KEY.enter);
    const text = await terminal.text();
    assert.match(text, /Compared +40 answers/);
    assert.match(text, /db\.corp\.example\. A/);
    assert.match(text, /Before +NOERROR A 192\.0\.2\.7\s[^]*After +NXDOMAIN\s[^]*Clients +7/);
  });

  test('Enter leads from a lookup to its client', async () => {
    const { terminal } = started({ columns: 110 });
    terminal.press('2');
    terminal.press(KEY.down);
    terminal.press(KEY.enter);
    terminal.press(KEY.enter);
    const text = await terminal.text();
    assert.match(text, /Resolver +glibc 98 %/);
    assert.match(text, /Last lookups/);
  });

  test('a finding expands to its clients, cause, fix and proof', async () => {
    const { terminal } = started();
    terminal.press('6');
    terminal.press(KEY.enter);
    const text = await terminal.text();
    for (const label of ['Seen', 'Why', 'Who', 'Fix', 'Prove', 'Disproved'])
      assert.match(text, new RegExp(`^ ${label} {2,}`, 'm'));
    assert.match(text, /ND3001 critical, 97 % sure, since 12:01:07 \(2 min\), the 2nd time/);
  });

  test('a finding on the first page expands, too, and a change leads to its subject', async () => {
    const { terminal } = started({ rows: 40 });
    terminal.press(KEY.enter);
    assert.match(await terminal.text(), /ND3001 critical, 97 % sure/);
    terminal.press(KEY.escape);
    for (let at = 0; at < 6; at++) terminal.press(KEY.down);
    terminal.press(KEY.enter);
    assert.match(await terminal.text(), /192\.0\.2\.53:5353\n.*Who/);
  });

  test('the waste of a workload expands to the patch that fixes it', async () => {
    const { terminal } = started();
    terminal.press(KEY.down);
    terminal.press(KEY.down);
    terminal.press(KEY.enter);
    const text = await terminal.text();
    assert.match(
      text,
      /ndots:2 saves 65 %: of its most queried names, 24\.3k queries become\s+8510/,
    );
    assert.match(text, /options: \[\{ name: ndots, value: "2" \}\]/);
  });

  test('the selected row stays selected while new ones arrive', async () => {
    const { terminal, model, clock } = started();
    terminal.press('2');
    terminal.press(KEY.down);
    const [row] = [await selectedLine(terminal)];
    model.skip = -1;
    await clock.advance(1000);
    assert.equal(await selectedLine(terminal), row);
  });

  test('more rows are requested when the list is scrolled', async () => {
    const { terminal, model } = started();
    terminal.press('2');
    for (let at = 0; at < 3; at++) terminal.press(KEY.pageDown);
    assert.ok(model.asked.at(-1)!.most! > model.asked.at(1)!.most!);
  });

  test('End goes to the last row of a list that is much longer than the screen', async () => {
    const { terminal, model, clock } = started({ columns: 110 });
    model.lookups = 900;
    terminal.press('2');
    terminal.press(KEY.end);
    assert.match((await selectedLine(terminal))!, /lookup-899\.example/);
    assert.match((await terminal.screen()).at(-2)!, /all 900 lookups/);
    await clock.advance(1000);
    assert.match((await selectedLine(terminal))!, /lookup-899\.example/);
    terminal.press('g');
    assert.match((await selectedLine(terminal))!, /lookup-0\.example/);
  });

  test('a list that filters do not affect says so', async () => {
    const { terminal } = started();
    terminal.press('/rcode=NXDOMAIN');
    terminal.press(KEY.enter);
    terminal.press('6');
    assert.match(
      (await terminal.screen()).at(-2)!,
      /all 3 findings, kernel lost 0, filters do not apply here/,
    );
  });

  test('without any query, the absence of findings is not good news', async () => {
    const { terminal, model } = started();
    model.isSilent = true;
    for (const key of ['1', '6']) {
      terminal.press(key);
      const text = await terminal.text();
      assert.match(text, /No query has been seen\./);
      assert.doesNotMatch(text, /None:|No faults were found/);
    }
  });

  test('l shows the lookups that a row counts', async () => {
    const { terminal, model } = started();
    terminal.press('3');
    terminal.press('l');
    assert.equal(model.asked.at(-1)!.view, 'lookups');
    assert.deepEqual(model.asked.at(-1)!.filters, [
      { word: 'from-ip', value: '10.244.1.7', negated: false },
    ]);
    assert.match(await terminal.text(), /filter from-ip=10\.244\.1\.7/);
  });
});

describe('filters', () => {
  test('are typed after /, and Esc removes them', async () => {
    const { terminal, model } = started();
    terminal.press('/rcode=NXDOMAIN not type=AAAA');
    assert.match((await terminal.screen()).at(-1)!, /^\/rcode=NXDOMAIN not type=AAAA/);
    terminal.press(KEY.enter);
    assert.deepEqual(model.asked.at(-1)!.filters, [
      { word: 'rcode', value: 'NXDOMAIN', negated: false },
      { word: 'type', value: 'AAAA', negated: true },
    ]);
    assert.match(await terminal.text(), /filter rcode=NXDOMAIN not type=AAAA/);
    terminal.press(KEY.escape);
    assert.equal(model.asked.at(-1)!.filters, undefined);
  });

  test('an error is shown during typing, and is not accepted', async () => {
    const { terminal, model } = started();
    terminal.press('/rcode=NIX');
    assert.match(
      (await terminal.screen()).at(-2)!,
      /(?<!-)rcode takes a result code such as NXDOMAIN/,
    );
    terminal.press(KEY.enter);
    assert.equal(model.asked.length, 1);
    assert.match((await terminal.screen()).at(-1)!, /^\/rcode=NIX/);
  });

  test('pod names need a cluster, and the message says so', async () => {
    const { terminal } = started();
    terminal.press('/namespace=shop');
    assert.match((await terminal.screen()).at(-2)!, /start with --cluster or --manifests/);
  });

  test('processes are unknown here, so their filters are explained and not offered', async () => {
    const { terminal } = started();
    terminal.press('/command=curl');
    assert.match((await terminal.screen()).at(-2)!, /command: only ndots capture --process/);
    terminal.press(KEY.escape);
    terminal.press('?');
    assert.doesNotMatch(await terminal.text(), /slower-than, command/);
  });

  test('Tab completes words, and Up recalls an earlier line', async () => {
    const { terminal } = started();
    terminal.press('/rc');
    terminal.press(KEY.tab);
    terminal.press('SERVFAIL');
    terminal.press(KEY.enter);
    terminal.press(KEY.escape);
    terminal.press('/');
    terminal.press(KEY.up);
    assert.match((await terminal.screen()).at(-1)!, /^\/rcode=SERVFAIL/);
  });

  test('a pasted command line is read unchanged', async () => {
    const { terminal, model } = started();
    terminal.press('/');
    terminal.press('\u001b[200~--not rcode=NXDOMAIN --from-ip 10.0.0.0/8\u001b[201~');
    terminal.press(KEY.enter);
    assert.deepEqual(model.asked.at(-1)!.filters, [
      { word: 'rcode', value: 'NXDOMAIN', negated: true },
      { word: 'from-ip', value: '10.0.0.0/8', negated: false },
    ]);
  });
});

describe('keys', () => {
  test('s sorts by the next column, r reverses, and the column has an arrow', async () => {
    const { terminal, model } = started({ columns: 110 });
    terminal.press('3');
    assert.match(await terminal.text(), /QUERIES↓/);
    terminal.press('s');
    assert.equal(model.asked.at(-1)!.sort, 'lookups');
    assert.match(await terminal.text(), /LOOKUPS↓/);
    terminal.press('r');
    assert.equal(model.asked.at(-1)!.reversed, true);
    assert.match(await terminal.text(), /LOOKUPS↑/);
  });

  test('a message about one page is not shown on the next', async () => {
    const { terminal } = started();
    terminal.press('3');
    terminal.press('s');
    assert.match((await terminal.screen()).at(-1)!, /Sorted by lookups/);
    terminal.press('5');
    assert.doesNotMatch((await terminal.screen()).at(-1)!, /Sorted by/);
  });

  test('p pauses the display but not the model, and p again resumes', async () => {
    const { terminal, model, clock } = started();
    terminal.press('p');
    assert.match((await terminal.screen())[0]!, /PAUSED/);
    const before = model.asked.length;
    await clock.advance(5000);
    assert.equal(model.asked.length, before);
    terminal.press(' ');
    assert.equal(model.asked.length, before + 1);
    assert.match((await terminal.screen())[0]!, /LIVE/);
  });

  test('a paused replay stops, and + and - change its speed', async () => {
    const pace = new ReplayPace(new VirtualClock(), 1);
    const { terminal } = started({ pace });
    terminal.press('+');
    assert.equal(pace.speed, 2);
    assert.match((await terminal.screen())[0]!, /2×/);
    terminal.press('-');
    terminal.press('-');
    assert.equal(pace.speed, 0.5);
    terminal.press('p');
    assert.equal(pace.isPaused, true);
  });

  test('w selects the last minute or the last ten seconds', async () => {
    const { terminal, model } = started();
    terminal.press('w');
    assert.equal(model.asked.at(-1)!.lastMs, 60_000);
    terminal.press('w');
    assert.equal(model.asked.at(-1)!.lastMs, 10_000);
    assert.match(await terminal.text(), /last 10 s only/);
    terminal.press('w');
    assert.equal(model.asked.at(-1)!.lastMs, undefined);
  });

  test('the resolv.conf of a trace is removed when the screen stops', () => {
    const { terminal, traced, screen } = started();
    terminal.press('2');
    terminal.press('t');
    const path = traced[0]![traced[0]!.indexOf('--resolv-conf') + 1]!;
    assert.match(readFileSync(path, 'utf8'), /^options ndots:/m);
    screen.stop();
    assert.ok(!existsSync(dirname(path)));
  });

  test('t traces the name as the client of the row, and shows what it printed', async (t) => {
    const { terminal, traced, screen } = started();
    t.after(() => screen.stop());
    terminal.press('2');
    terminal.press(KEY.down);
    terminal.press('t');
    await new Promise(setImmediate);
    assert.deepEqual(traced[0]!.slice(0, 4), ['trace', 'api.stripe.com', '-c', 'glibc']);
    assert.match(await terminal.text(), /what trace printed/);
  });

  test('y shows the command that prints the same, and copies it', async () => {
    const { terminal } = started();
    terminal.press('/rcode=NXDOMAIN');
    terminal.press(KEY.enter);
    terminal.press('3');
    terminal.takeWritten();
    terminal.press('y');
    const command = 'ndots capture -i any -o clients --rcode NXDOMAIN';
    assert.ok((await terminal.text()).includes(command));
    assert.ok(terminal.takeWritten().includes(Buffer.from(command).toString('base64')));
  });

  test('? lists the keys, and can be scrolled', async () => {
    const { terminal } = started();
    terminal.press('?');
    assert.match(await terminal.text(), /y {10}show and copy the command/);
    terminal.press(KEY.end);
    assert.match(await terminal.text(), /P50 P99/);
  });

  for (const key of ['q', KEY.ctrlC])
    test(`${JSON.stringify(key)} quits`, () => {
      const { terminal, quits } = started();
      terminal.press(key);
      assert.equal(quits.count, 1);
    });

  test('Ctrl-Z stops the process, and the screen is redrawn when it continues', async () => {
    const { terminal } = started();
    terminal.press('\u001a');
    assert.equal(terminal.suspensions, 1);
    assert.match(await terminal.text(), /Queries/);
  });

  test('unknown keys change nothing', () => {
    const { terminal, model } = started();
    terminal.takeWritten();
    for (const key of ['X', 'Z', '\u001b[15~', '\u0001', 'é']) terminal.press(key);
    assert.equal(terminal.takeWritten(), '');
    assert.equal(model.asked.length, 1);
  });
});

describe('foreign text', () => {
  test('names are never interpreted by the terminal', async () => {
    const evil = '\u001b[2J\u001b]0;owned\u0007\u009b31m';
    const { terminal, model } = started({ columns: 120 });
    model.evil = evil;
    for (const key of ['2', '3', '4', '5', '6']) {
      terminal.press(key);
      terminal.press(KEY.enter);
      assert.ok(!terminal.takeWritten().includes(evil.slice(0, 4) + '\u001b]'), key);
      assert.match(await terminal.text(), /\\u001b\[2J\\u001b\]0;/);
    }
  });
});

/** Views with untrusted names, each one row longer than the last. */
class ChangingModel extends SampleModel {
  skip = 0;
  evil = '';
  /** True if no query has been seen. */
  isSilent = false;
  /** The number of lookups; null: those of the sample. */
  lookups: number | null = null;

  override view<V extends ViewName>(query: ViewQuery<V>): Views[V] {
    const sample = super.view(query) as Views[ViewName];
    const inputs = sample.inputs.map((input) => ({ ...input, queries: 0 }));
    const seen = this.isSilent
      ? { ...sample, inputs, detailFromMs: null, findings: [], rows: [] }
      : sample;
    if (seen.view === 'lookups' && this.lookups !== null) {
      const all = Array.from({ length: this.lookups }, (_, id) => ({
        ...seen.rows[0]!,
        ...{ id, name: `lookup-${id}.example.` },
      }));
      const rows = all.slice(0, query.most);
      return { ...seen, rows, total: all.length, shown: rows.length } as unknown as Views[V];
    }
    if (seen.view === 'lookups' && this.skip < 0)
      return {
        ...seen,
        rows: [{ ...seen.rows[3]!, id: 999 }, ...seen.rows],
      } as unknown as Views[V];
    if (this.evil === '' || seen.view === 'now') return seen as Views[V];
    const rows = (seen.rows as readonly object[]).map((row) => ({
      ...row,
      name: this.evil,
      title: this.evil,
    }));
    return { ...seen, rows } as unknown as Views[V];
  }
}

test('x switches to the next cluster, and shows a message if there is none', async () => {
  const { terminal } = started({ clusters: ['prod-eu', 'prod-us'] });
  assert.match((await terminal.screen())[1]!, /prod-eu/);
  terminal.press('x');
  const lines = await terminal.screen();
  assert.match(lines[1]!, /prod-us/);
  assert.match(lines.at(-1)!, /cluster prod-us/);
  terminal.press('x');
  assert.match((await terminal.screen())[1]!, /prod-eu/);
  const alone = started().terminal;
  alone.press('x');
  assert.match((await alone.screen()).at(-1)!, /there is one cluster/);
});

function started({
  columns = 80,
  rows = 24,
  pace = null,
  depth = 256,
  clusters = [],
}: {
  columns?: number;
  rows?: number;
  pace?: ReplayPace | null;
  depth?: ColourDepth;
  clusters?: readonly string[];
} = {}): {
  terminal: EmulatedTerminal;
  model: ChangingModel;
  clock: VirtualClock;
  traced: (readonly string[])[];
  quits: { count: number };
  screen: TopScreen;
} {
  const terminal = new EmulatedTerminal(columns, rows);
  const model = new ChangingModel();
  const clock = new VirtualClock();
  const traced: (readonly string[])[] = [];
  const quits = { count: 0 };
  let shown = 0;
  const feed: PacketFeed = {
    name: 'all interfaces, ports 53 and 5353',
    pace,
    progress: '',
    isOver: false,
    begun: Promise.resolve(),
    over: new Promise(() => undefined),
    stop: () => undefined,
  };
  const screen = new TopScreen({
    ask: (query) => model.view(query),
    feed: () => ({ ...feed, name: clusters[shown] ?? feed.name }),
    next: clusters.length < 2 ? null : () => clusters[(shown = (shown + 1) % clusters.length)]!,
    terminal,
    depth,
    clock,
    options: parseTopOptions(['-i', 'any']),
    program: 'ndots',
    trace: (words) => {
      traced.push(words);
      return Promise.resolve('what trace printed\n');
    },
    quit: () => void quits.count++,
  });
  screen.start();
  return { terminal, model, clock, traced, quits, screen };
}

/** The selected line, which is in reverse video. */
async function selectedLine(terminal: EmulatedTerminal): Promise<string | undefined> {
  const lines = await terminal.screen();
  for (const [row, line] of lines.entries()) {
    if (row > 0 && (await terminal.cell(2, row)).inverse) return line;
  }
  return undefined;
}
