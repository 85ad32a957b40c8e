/** Changes between releases, and rare cases, with one fact per test. recorded.json has runs of the real clients. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seededRandom } from '../../server/base/random.ts';
import { parseAnswers } from './answers-file.ts';
import type { AddressFamily, Settings } from './client.ts';
import { findClient } from './clients.ts';
import { planLookup, type LookupRun } from './run-lookup.ts';

interface Given {
  readonly name?: string;
  readonly resolv?: string;
  readonly nsswitch?: string;
  readonly env?: Settings['env'];
  readonly families?: readonly AddressFamily[];
  readonly repeat?: number;
  readonly rules?: readonly object[];
}

const twoServers = 'nameserver 10.96.0.10\nnameserver 10.96.0.11\n';

/** @param given defaults to a lookup of `www.example.com.` */
function plan(label: string, given: Given): Promise<LookupRun> {
  const client = findClient(label);
  assert.ok(client !== null, label);
  const settings: Settings = {
    resolvConf: given.resolv ?? 'nameserver 10.96.0.10\n',
    nsswitch: given.nsswitch ?? 'hosts: files dns\n',
    hosts: '127.0.0.1 localhost\n10.244.0.10 mypod\n',
    hostAliases: null,
    env: given.env ?? {},
    host: { hostname: 'mypod', addresses: ['10.244.0.10', 'fe80::1'], loopback: [4, 6] },
  };
  const { name = 'www.example.com.', families = [4, 6], repeat = 1 } = given;
  const asked = { client, name, families, addrConfig: false, settings, repeat, limitMs: 200_000 };
  return planLookup(asked, parseAnswers({ rules: given.rules ?? [] }, 'test'), seededRandom(7));
}

/** Formats queries and their servers in order, as in `A@10 AAAA@10`. A T marks TCP. */
function sent({ trace }: LookupRun): string {
  const shown = trace.exchanges.map(
    ({ protocol, type, server }) => `${protocol === 'tcp' ? 'T' : ''}${type}@${server.slice(-2)}`,
  );
  return shown.join(' ');
}

function outcome({ results }: LookupRun): string {
  const found = results[0]?.found;
  return found?.failure?.code ?? found?.addresses.join(' ') ?? '';
}

const answered = [{ answer: '203.0.113.80 2001:db8::1' }];

describe('glibc by release', () => {
  test('before 2.36 no-aaaa is unknown', async () => {
    const given = { resolv: 'nameserver 10.96.0.10\noptions no-aaaa\n', rules: answered };
    assert.equal(sent(await plan('glibc@2.35', given)), 'A@10 AAAA@10');
    assert.equal(sent(await plan('glibc@2.36', given)), 'A@10');
  });

  test('before 2.34 DNS comes first where nsswitch.conf has no hosts line', async () => {
    const given = { name: 'mypod', nsswitch: '', rules: [{ type: 'A', answer: '1.2.3.4' }] };
    assert.equal(outcome(await plan('glibc@2.33', given)), '1.2.3.4');
    assert.equal(outcome(await plan('glibc@2.34', given)), '10.244.0.10');
  });

  test('before 2.34 an address before its CNAME counts', async () => {
    const rules = [{ type: 'A', answer: 'CNAME=web.example.net. 203.0.113.80 rev' }];
    assert.equal(outcome(await plan('glibc@2.31', { rules })), '203.0.113.80');
    assert.equal(outcome(await plan('glibc@2.36', { rules })), 'EAI_NONAME');
  });
});

describe('musl by release', () => {
  test('before 1.2.1 one family is enough', async () => {
    const rules = [{ type: 'A', answer: '203.0.113.80' }];
    assert.equal(outcome(await plan('musl@1.2.0', { rules })), '203.0.113.80');
    assert.equal(outcome(await plan('musl@1.2.1', { rules })), 'EAI_NONAME');
  });

  test('attempts:0 crashes the process', async () => {
    const run = await plan('musl', { resolv: 'nameserver 10.96.0.10\noptions attempts:0\n' });
    assert.equal(outcome(run), 'SIGFPE');
    assert.equal(sent(run), '');
  });

  test('a non-ASCII name is queried, and its answer lost', async () => {
    const run = await plan('musl', { name: 'bücher.example.', rules: answered });
    assert.equal(run.trace.exchanges[0]?.name, 'b\\195\\188cher.example.');
    assert.equal(outcome(run), 'EAI_NODATA');
  });
});

describe('replies that do not match the question', () => {
  const forged = [
    { server: '10.96.0.10', type: 'A', answer: 'from=10.96.0.11 q=evil.example. 6.6.6.6' },
    { server: '10.96.0.10', type: 'AAAA', answer: 'NODATA' },
    { answer: 'DROP' },
  ];
  const resolv = `${twoServers}options timeout:1 attempts:1\n`;

  test('musl accepts one with the right ID from any server in the file', async () => {
    assert.equal(outcome(await plan('musl', { resolv, rules: forged })), '6.6.6.6');
  });

  for (const label of ['glibc', 'go', 'c-ares', 'c-ares@1.18', 'evdns']) {
    test(`${label} does not`, async () => {
      const run = await plan(label, { resolv, rules: forged });
      assert.notEqual(outcome(run), '6.6.6.6');
    });
  }
});

describe('TCP that is accepted and reset', () => {
  const rules = [
    { type: 'A', answer: 'TC RST 203.0.113.80' },
    { type: 'AAAA', answer: '2001:db8::1' },
  ];

  test('glibc reconnects once and gives up', async () => {
    const run = await plan('glibc', { rules });
    assert.equal(sent(run), 'A@10 AAAA@10 TA@10 TAAAA@10 TA@10 TAAAA@10');
    assert.equal(outcome(run), 'EAI_AGAIN');
  });

  test('musl fails', async () => {
    const run = await plan('musl', { rules });
    assert.equal(sent(run), 'A@10 AAAA@10 TA@10');
    assert.equal(outcome(run), 'EAI_AGAIN');
  });

  test('Go starts again with UDP, and uses the other family', async () => {
    const run = await plan('go', { rules });
    assert.equal(sent(run), 'AAAA@10 A@10 TA@10 A@10 TA@10');
    assert.equal(outcome(run), '2001:db8::1');
  });
});

describe('c-ares by release', () => {
  test('before 1.18 NODATA ends the walk', async () => {
    const given = {
      name: 'api',
      resolv: 'nameserver 10.96.0.10\nsearch a.example\noptions ndots:5\n',
      rules: [{ name: 'api.a.example.', answer: 'NODATA' }, ...answered],
    };
    assert.equal(outcome(await plan('c-ares@1.17.1', given)), 'ARES_ENODATA');
    assert.equal(outcome(await plan('c-ares@1.18', given)), '203.0.113.80 2001:db8::1');
  });

  test('names under localhost need no server since 1.19', async () => {
    const given = { name: 'kube-health.localhost' };
    assert.equal(outcome(await plan('c-ares@1.18', given)), 'ARES_ENOTFOUND');
    assert.equal(outcome(await plan('c-ares@1.19.1', given)), '127.0.0.1 ::1');
  });

  test('ndots:0 does not count from 1.22 to 1.30', async () => {
    const given = {
      name: 'api',
      resolv: 'nameserver 10.96.0.10\nsearch a.example\noptions ndots:0\n',
    };
    const first = async (label: string): Promise<string | undefined> =>
      (await plan(label, given)).trace.exchanges[0]?.name;
    assert.equal(await first('c-ares@1.27'), 'api.a.example.');
    assert.equal(await first('c-ares@1.31'), 'api.');
  });

  test('a name of 254 letters without a trailing dot is sent since 1.27', async () => {
    const name = [63, 63, 63, 62].map((length) => 'a'.repeat(length)).join('.');
    assert.equal(outcome(await plan('c-ares@1.26', { name, rules: answered })), 'ARES_EBADNAME');
    assert.equal(sent(await plan('c-ares@1.27', { name, rules: answered })), 'A@10 AAAA@10');
  });

  test('after a time-out 1.34.7 takes a new socket, 1.34.6 after any failure', async () => {
    const ports = async (label: string, answer: readonly string[]): Promise<number> => {
      const run = await plan(label, { families: [4], rules: [{ answer }] });
      return new Set(run.trace.exchanges.map(({ port }) => port)).size;
    };
    const lost = ['DROP', '203.0.113.80'];
    const failed = ['SERVFAIL', '203.0.113.80'];
    assert.deepEqual(
      [await ports('c-ares@1.34.4', lost), await ports('c-ares@1.34.4', failed)],
      [1, 1],
    );
    assert.deepEqual(
      [await ports('c-ares@1.34.6', lost), await ports('c-ares@1.34.6', failed)],
      [2, 2],
    );
    assert.deepEqual(
      [await ports('c-ares@1.34.8', lost), await ports('c-ares@1.34.8', failed)],
      [2, 1],
    );
  });
});

describe('programs on libc', () => {
  test('Python refuses a label of more than 63 letters, in words of its release', async () => {
    const name = `${'a'.repeat(64)}.example`;
    const run = await plan('python@3.11', { name });
    assert.equal(outcome(run), 'UnicodeError');
    assert.match(run.results[0]?.found.failure?.text ?? '', /^encoding with 'idna' codec failed/);
    const newer = await plan('python@3.13', { name });
    assert.match(newer.results[0]?.found.failure?.text ?? '', /in position 0-63: label too long$/);
  });

  test('a non-ASCII name reaches curl and getent only in a UTF-8 locale', async () => {
    const given = { name: 'bücher.example.', rules: answered };
    assert.equal(outcome(await plan('curl', given)), 'CURLE_URL_MALFORMAT');
    const env = { LANG: 'C.UTF-8' };
    const run = await plan('getent-ahosts', { ...given, env });
    assert.equal(run.trace.exchanges[0]?.name, 'xn--bcher-kva.example.');
  });

  test("Node's note about its threads counts the lookup, not the time before it", async () => {
    const slow = [{ answer: ['DROP', 'DROP', 'DROP', 'DROP', '203.0.113.80'] }];
    const given = { resolv: 'nameserver 10.96.0.10\noptions timeout:1\n', rules: slow, repeat: 2 };
    const { trace } = await plan('node', given);
    const words = trace.steps.filter(({ text }) => text.startsWith('Node has four threads'));
    assert.equal(words.length, 1);
  });

  test('dns.resolve follows timeout: and notices at the next tick of a second', async () => {
    const given = {
      resolv: 'nameserver 10.96.0.10\noptions timeout:4\n',
      rules: [{ answer: ['DROP', 'DROP', '203.0.113.80'] }],
    };
    const { trace } = await plan('node-resolve', given);
    assert.equal(trace.exchanges[2]?.atMs, 4999);
  });

  test('the trace begins with a note if the release is unknown', async () => {
    const { trace } = await plan('python@4.0', { rules: answered });
    assert.equal(
      trace.steps[0]?.text,
      'python 4.0 is unknown: this is 3.14, the nearest known release.',
    );
  });
});

describe('nslookup', () => {
  const names = async (name: string, search: string): Promise<string> => {
    const resolv = `nameserver 10.96.0.10\nsearch ${search}\noptions ndots:9\n`;
    const run = await plan('nslookup', { name, resolv });
    assert.equal(outcome(run), '1');
    return run.trace.exchanges.map((exchange) => exchange.name).join(' ');
  };

  test('the search domain "." is the name as written, which is queried again at the end', async () => {
    assert.equal(
      await names('api', 'a.example . b.example'),
      'api.a.example. api. api.b.example. api.',
    );
  });

  test('it exits at a search domain or name with an empty label or one of over 63 letters', async () => {
    assert.equal(await names('api', 'a.example .two.example b.example'), 'api.a.example.');
    assert.equal(await names('api', `a.example ${'x'.repeat(64)}`), 'api.a.example.');
    assert.equal(await names('a..b', 'a.example'), '');
    assert.equal(await names('x'.repeat(64), 'a.example'), '');
  });

  test('it skips search domains that would make the name longer than 255 bytes', async () => {
    const long = Array.from({ length: 4 }, () => 'a'.repeat(60)).join('.');
    assert.equal(await names('apiapiapi.b', `${long} x`), 'apiapiapi.b.x. apiapiapi.b.');
  });
});

describe('nslookup in busybox', () => {
  const sentNames = async (name: string, search: string, given: Given = {}): Promise<string> => {
    const { trace } = await plan('busybox', {
      name,
      resolv: `${twoServers}search ${search}\n`,
      ...given,
    });
    return trace.exchanges
      .map((exchange) => `${exchange.name} ${exchange.type}@${exchange.server.slice(-2)}`)
      .join(', ');
  };

  test('a search list of only "." counts as none', async () => {
    assert.equal(await sentNames('api', '.'), 'api. A@10, api. AAAA@10');
  });

  test('a name that does not fit into a message ends the attempt at each server', async () => {
    assert.equal(
      await sentNames('api', 'a.example . b.example'),
      'api.a.example. A@10, api.a.example. A@11',
    );
    assert.equal(await sentNames('a..b', 'a.example'), '');
    assert.equal(await sentNames('x'.repeat(64), 'a.example'), '');
  });

  test('the second server is queried after the first did not answer for 5 seconds', async () => {
    const rules = [{ server: '10.96.0.10', answer: 'DROP' }, ...answered];
    const run = await plan('busybox', { resolv: twoServers, rules });
    assert.equal(sent(run), 'A@10 AAAA@10 A@10 AAAA@10 A@11 AAAA@11');
    assert.deepEqual(
      run.trace.exchanges.map(({ atMs }) => atMs),
      [0, 0, 2500, 2500, 5000, 5000],
    );
    assert.equal(outcome(run), '203.0.113.80 2001:db8::1');
  });
});

test('nslookup and busybox ignore LOCALDOMAIN and RES_OPTIONS', async () => {
  const resolv = 'nameserver 10.96.0.10\nsearch a.example\n';
  for (const label of ['nslookup', 'busybox']) {
    const env = { LOCALDOMAIN: 'b.example', RES_OPTIONS: 'ndots:3 timeout:1' };
    const plain = await plan(label, { name: 'api', resolv });
    const changed = await plan(label, { name: 'api', resolv, env });
    assert.deepEqual(changed.trace.exchanges, plain.trace.exchanges, label);
    assert.equal(plain.trace.exchanges[0]?.name, 'api.a.example.', label);
  }
});
