/** Views of a small cluster as the live model returns them, for tests of how they are displayed. */
import type {
  ClientRow,
  FindingRow,
  Listed,
  LiveCounts,
  LookupRow,
  NameRow,
  Party,
  QueryRow,
  ServerRow,
  ViewHead,
  ViewName,
  ViewQuery,
  Views,
} from '../../src/tools/watch/view.ts';

/** 12:03:20 UTC. */
const AT = Date.UTC(2026, 10, 29, 12, 3, 20);

/** A party of which only the address is known. */
function address(text: string): Party {
  const unknown = { name: '', namespace: '', workload: '', node: '' };
  return { address: text, kind: '', ...unknown, isGone: false };
}

/** A pod, as named with `--cluster`. */
function pod(name: string, at: string, workload: string, node = 'node7'): Party {
  const [namespace = ''] = name.split('/');
  return { ...address(at), kind: 'pod', name, namespace, workload, node };
}

const cart = pod('shop/cart-7d4b9c5f6b-x2x8k', '10.244.1.7', 'deploy/cart');
const web = pod('shop/web-5c9f8d7b6-qq4zt', '10.244.2.9', 'deploy/web', 'node3');
const batch = { ...pod('data/etl-28441-vx9', '10.244.3.20', 'job/etl-28441'), isGone: true };
const dns: Party = { ...address('10.96.0.10'), kind: 'service', name: 'kube-system/kube-dns' };
const coredns = pod('kube-system/coredns-7db6d8ff4d-4hxkz', '10.244.0.3', 'deploy/coredns');

function counts(
  queries: number,
  lost: number,
  failed: number,
  wasted: number,
  p50: number | null,
  p99: number | null,
): LiveCounts {
  const nxdomain = wasted;
  return {
    ...{ queries, lost, failed, wasted },
    rcodes: [
      { rcode: 'NXDOMAIN', count: nxdomain },
      { rcode: 'NOERROR', count: queries - nxdomain - lost - failed },
      ...(failed > 0 ? [{ rcode: 'SERVFAIL', count: failed }] : []),
    ],
    latency: {
      ...{ p50, p90: p50 === null ? null : p50 * 2, p99, p999: p99 },
      max: p99 === null ? null : p99 * 1.5,
    },
  };
}

function query(
  name: string,
  type: string,
  afterMs: number,
  more: Partial<QueryRow> = {},
): QueryRow {
  return {
    ...{ name, type, protocol: 'udp', server: dns, behind: [coredns], afterMs, tookMs: 0.4 },
    ...{ rcode: 'NXDOMAIN', answers: 0, truncated: false, attempt: 1 },
    ...{ reason: 'search', why: 'search domain', ...more },
  };
}

const walk: readonly QueryRow[] = [
  query('api.stripe.com.shop.svc.cluster.local.', 'A', 0, {
    reason: 'first',
    why: 'search domain shop.svc.cluster.local',
  }),
  query('api.stripe.com.shop.svc.cluster.local.', 'AAAA', 0.1, {
    reason: 'other-family',
    why: 'the other address family',
  }),
  query('api.stripe.com.svc.cluster.local.', 'A', 0.6, { why: 'search domain svc.cluster.local' }),
  query('api.stripe.com.cluster.local.', 'A', 1.2, { why: 'search domain cluster.local' }),
  query('api.stripe.com.', 'A', 1.9, {
    rcode: 'NOERROR',
    answers: 3,
    tookMs: 11.2,
    reason: 'as-written',
    why: 'as written',
  }),
  query('api.stripe.com.', 'AAAA', 2, {
    rcode: '',
    tookMs: null,
    reason: 'other-family',
    why: 'the other address family',
  }),
  query('api.stripe.com.', 'AAAA', 5002, {
    rcode: 'NOERROR',
    tookMs: 12,
    attempt: 2,
    reason: 'no-reply',
    why: 'no reply within 5 s',
  }),
];

function lookup(id: number, name: string, client: Party, more: Partial<LookupRow> = {}): LookupRow {
  const found = { rcode: 'NOERROR', answers: 1, reason: 'first', why: 'as written' } as const;
  return {
    ...{ id, client, clientId: client.address, name, startMs: AT - (60 - id) * 137, tookMs: 0.6 },
    ...{ outcome: 'answered', rcode: 'NOERROR', wasted: 0, lost: 0 },
    ...{ queries: [query(`${name}.`, 'A', 0, found)], more: 0, ...more },
  };
}

/** Newest first. */
const sampleLookups: readonly LookupRow[] = [
  lookup(59, 'redis.cache', web, { outcome: 'waiting', rcode: '', queries: walk.slice(0, 1) }),
  lookup(58, 'api.stripe.com', cart, { tookMs: 5014, lost: 1, wasted: 4, queries: walk }),
  lookup(57, 'kube-health.localhost', batch, {
    outcome: 'no-such-name',
    rcode: 'NXDOMAIN',
    wasted: 6,
    tookMs: 2.4,
  }),
  lookup(56, 'backend.shop.svc.cluster.local', web),
  lookup(55, 'db.internal.example.com', cart, {
    outcome: 'error',
    rcode: 'SERVFAIL',
    tookMs: 2004,
  }),
  lookup(54, 'telemetry.example.net', address('192.168.7.31'), {
    outcome: 'lost',
    rcode: '',
    lost: 4,
    tookMs: 20_020,
  }),
  lookup(53, 'ipv6-only.example.org', web, { outcome: 'no-record', tookMs: 34 }),
  ...Array.from({ length: 53 }, (_, at) =>
    lookup(52 - at, `svc-${at % 7}.shop`, at % 2 === 0 ? cart : web),
  ),
];

const finding: FindingRow = {
  id: 'ND3001',
  code: 'ND3001',
  title: 'A and AAAA leave at the same moment, and the kernel drops one of the two',
  subject: '',
  severity: 'critical',
  confidence: 0.97,
  state: 'continues',
  beganMs: AT - 133_000,
  firstSeenMs: AT - 130_000,
  lastSeenMs: AT,
  endedMs: null,
  times: 2,
  seen: [
    '41 of 12 040 pairs lost one query',
    'the other one was answered in 0.4 ms',
    'all of them came from one port',
  ],
  why: 'Two queries from one socket race for one conntrack entry. The kernel inserts the first and drops the second, so the client waits 5 s.',
  fix: ['Run a node-local DNS cache.', 'Set single-request-reopen in dnsConfig (glibc only).'],
  prove: 'conntrack -S: insert_failed rises with each lost query',
  disproved: 'insert_failed stays the same while queries are lost',
  places: [],
  who: {
    clients: 12,
    nodes: 2,
    groups: [{ name: 'node node7', clients: 9, share: 0.9 }],
    resolvers: [{ name: 'glibc', count: 12 }],
    affected: [],
  },
  examples: [
    {
      client: cart,
      server: dns,
      name: 'api.stripe.com.',
      type: 'AAAA',
      sentMs: AT - 8012,
      tookMs: null,
      rcode: '',
    },
    {
      client: web,
      server: dns,
      name: 'redis.cache.svc.cluster.local.',
      type: 'AAAA',
      sentMs: AT - 19_000,
      tookMs: null,
      rcode: '',
    },
  ],
  queries: 41,
};

/** One is active, one is new, and one has ended. */
const sampleFindings: readonly FindingRow[] = [
  finding,
  {
    ...finding,
    id: 'ND2001',
    code: 'ND2001',
    title: 'Most queries cannot succeed because the search path creates names that do not exist',
    severity: 'warning',
    state: 'began',
    beganMs: AT - 8000,
    times: 1,
    queries: 24_800,
  },
  {
    ...finding,
    id: 'ND3010 192.0.2.53',
    code: 'ND3010',
    title: 'An upstream does not answer',
    subject: '192.0.2.53',
    state: 'ended',
    beganMs: AT - 540_000,
    endedMs: AT - 301_000,
    times: 1,
    queries: 310,
  },
];

function client(
  party: Party,
  sums: LiveCounts,
  [lookups, failedLookups, slowLookups]: readonly [number, number, number],
  [first, last]: readonly [number, number],
  resolver: ClientRow['resolver'],
): ClientRow {
  return {
    ...{ ...party, ...sums, id: party.address, lookups, failedLookups, slowLookups },
    ...{ firstMs: AT - first, lastMs: AT - last, resolver, servers: [dns] },
  };
}

const fewLookups = { kinds: [], confidence: null, why: 'too few lookups' };
/** Busiest first. */
const sampleClients: readonly ClientRow[] = [
  client(cart, counts(24_310, 41, 12, 15_800, 0.4, 12), [4100, 31, 41], [600_000, 100], {
    ...{ kinds: ['glibc'], confidence: 0.98, why: '' },
  }),
  client(web, counts(9120, 0, 0, 1200, 0.3, 2.1), [3900, 0, 0], [600_000, 900], {
    ...{ kinds: ['musl', 'go'], confidence: 0.84, why: '' },
  }),
  client(batch, counts(310, 0, 0, 240, 0.4, 31), [40, 40, 0], [500_000, 240_000], fewLookups),
  {
    ...client(
      address('192.168.7.31'),
      counts(4, 4, 0, 0, null, null),
      [1, 1, 1],
      [20_000, 2000],
      fewLookups,
    ),
    servers: [address('8.8.8.8')],
  },
];

const names: readonly NameRow[] = [
  {
    ...counts(20_500, 41, 0, 12_300, 0.5, 12),
    ...{ id: 'api.stripe.com', name: 'api.stripe.com', types: ['A', 'AAAA'], outcome: 'answered' },
    ...{ lookups: 2050, failedLookups: 0, slowLookups: 0, clients: 14, lastMs: AT - 200, error: 0 },
  },
  {
    ...counts(6200, 0, 0, 2000, 0.3, 1.1),
    ...{ id: 'redis.cache', name: 'redis.cache', types: ['A', 'AAAA'], outcome: 'waiting' },
    ...{
      lookups: 1990,
      failedLookups: 0,
      slowLookups: 0,
      clients: null,
      lastMs: AT - 100,
      error: 3,
    },
  },
  {
    ...counts(310, 0, 12, 240, 0.4, 2004),
    ...{ id: 'db.internal.example.com', name: 'db.internal.example.com', outcome: 'error' },
    ...{ types: ['A', 'AAAA', 'HTTPS'], lookups: 40, failedLookups: 12, slowLookups: 0 },
    ...{ clients: 2, lastMs: AT - 4000, error: 0 },
  },
];

function server(party: Party, sums: LiveCounts, more: Partial<ServerRow>): ServerRow {
  const port = more.port ?? 53;
  return {
    ...{ ...party, ...sums, id: `${party.address}:${port}`, port, role: 'behind', clients: 14 },
    ...{ firstMs: AT - 600_000, lastMs: AT, behind: [], odd: '', ...more },
  };
}

const second = pod('kube-system/coredns-7db6d8ff4d-p9s2m', '10.244.4.2', 'deploy/coredns');
const servers: readonly ServerRow[] = [
  server(dns, counts(33_700, 45, 12, 17_300, 0.4, 12), { role: 'server', behind: [coredns] }),
  server(coredns, counts(17_100, 2, 0, 8600, 0.4, 11), {}),
  server(second, counts(16_500, 43, 12, 8700, 0.5, 310), {
    ...{ clients: 13, odd: 'loses 20 times as many queries as its fellows' },
  }),
  server(address('192.0.2.53'), counts(910, 310, 9, 0, 21, 2004), {
    ...{ port: 5353, role: 'upstream', clients: 2, lastMs: AT - 301_000 },
  }),
];

function wave(height: number): readonly number[] {
  return Array.from({ length: 60 }, (_, at) =>
    Math.max(0, Math.round(height * (1 + Math.sin(at / 5)))),
  );
}

function listed<Row>(rows: readonly Row[], query: ViewQuery, total = rows.length): Listed<Row> {
  const chosen =
    query.id === undefined
      ? rows
      : rows.filter((row) => String((row as { id: number | string }).id) === String(query.id));
  const shown = chosen.slice(0, query.most ?? 200);
  return {
    ...{ rows: shown, shown: shown.length, total: query.id === undefined ? total : chosen.length },
    ...{ leftOut: 0, lostByKernel: 0, sampledShare: 1, error: 0 },
  };
}

function head<V extends ViewName>(view: V): ViewHead<V> {
  return {
    version: 1,
    view,
    atMs: AT,
    window: { fromMs: AT - 600_000, toMs: AT },
    detailFromMs: AT - 600_000,
    inputs: [
      {
        ...{ name: 'all interfaces, ports 53 and 5353', state: 'reading', why: '' },
        ...{ queries: 33_744, lookups: 8041, lostByKernel: 0, lastMs: AT },
        ...{ awayMs: null, aheadMs: 0, odd: '' },
      },
    ],
    memory: { usedBytes: 13_000_000, limitBytes: 32 * 1024 * 1024, dropped: '' },
    remarks: [],
  };
}

/** Returns the requested view and records the requests. */
export class SampleModel {
  readonly asked: ViewQuery[] = [];

  view<V extends ViewName>(query: ViewQuery<V>): Views[V] {
    this.asked.push(query);
    return this.#view(query) as Views[V];
  }

  #view(query: ViewQuery): Views[ViewName] {
    switch (query.view) {
      case 'now':
        return {
          ...head('now'),
          ...counts(33_744, 45, 12, 17_240, 0.4, 12),
          lookups: 8041,
          failedLookups: 72,
          slowLookups: 42,
          rates: { queries: 812.4, lookups: 201, lost: 0.3, failed: 0, wasted: 415 },
          waiting: 3,
          lostByKernel: 0,
          types: [
            { type: 'A', count: 17_000 },
            { type: 'AAAA', count: 16_700 },
            { type: 'SRV', count: 44 },
          ],
          protocols: [
            { protocol: 'udp', count: 33_700 },
            { protocol: 'tcp', count: 44 },
          ],
          clients: 16,
          servers: 4,
          series: {
            fromMs: AT - 600_000,
            stepMs: 10_000,
            queries: wave(800),
            lookups: wave(200),
            lost: Array.from({ length: 60 }, (_, at) => (at > 45 ? at % 3 : 0)),
            failed: Array.from({ length: 60 }, (_, at) => (at === 20 ? 12 : 0)),
            nxdomain: wave(400),
            wasted: wave(400),
            p50: wave(1),
            p99: wave(12),
          },
          waste: {
            queries: 17_240,
            share: 17_240 / 33_744,
            workloads: listed(
              [
                {
                  id: 'shop/deploy/cart',
                  namespace: 'shop',
                  workload: 'deploy/cart',
                  clients: 9,
                  queries: 24_310,
                  wasted: 15_800,
                  wastedRate: 380,
                  plan: {
                    ndots: 2,
                    queriesNow: 24_310,
                    // eslint-disable-next-line unicorn/no-thenable -- a number
                    queriesThen: 8510,
                    broken: [],
                    unknown: [],
                    dotted: [],
                    patch:
                      'spec:\n  template:\n    spec:\n      dnsConfig:\n        options: [{ name: ndots, value: "2" }]',
                    resolver: 'glibc',
                  },
                },
                {
                  id: 'shop/deploy/web',
                  namespace: 'shop',
                  workload: 'deploy/web',
                  clients: 4,
                  queries: 9120,
                  wasted: 1200,
                  wastedRate: 31,
                  plan: null,
                },
              ],
              { view: 'now' },
            ),
          },
          findings: sampleFindings.filter(({ endedMs }) => endedMs === null),
          excluded: 44,
          unknown: 8,
          changes: listed(
            [
              {
                atMs: AT - 8000,
                kind: 'finding-began' as const,
                text: 'ND2001 most queries cannot succeed',
                about: { view: 'findings' as const, id: 'ND2001' },
              },
              {
                atMs: AT - 301_000,
                kind: 'finding-ended' as const,
                text: 'ND3010 an upstream does not answer',
                about: { view: 'findings' as const, id: 'ND3010 192.0.2.53' },
              },
              {
                atMs: AT - 302_000,
                kind: 'server-back' as const,
                text: '192.0.2.53 answers again',
                about: { view: 'servers' as const, id: '192.0.2.53:5353' },
              },
              {
                atMs: AT - 400_000,
                kind: 'reload' as const,
                text: 'pod kube-system/coredns-1 serves a new configuration: 1 answer changed',
                about: null,
                reload: 1,
              },
            ],
            { view: 'now' },
          ),
          reloads: [
            {
              id: 1,
              atMs: AT - 400_000,
              servers: ['pod kube-system/coredns-1'],
              compared: 40,
              changed: 1,
              answers: [
                {
                  name: 'db.corp.example.',
                  type: 'A',
                  kind: 'rcode' as const,
                  before: { rcode: 'NOERROR', records: ['A 192.0.2.7'], more: 0 },
                  after: { rcode: 'NXDOMAIN', records: [], more: 0 },
                  repliesBefore: 120,
                  repliesAfter: 80,
                  clients: 7,
                  servers: 1,
                },
              ],
            },
          ],
        };
      case 'lookups':
        return { ...head('lookups'), ...listed(sampleLookups, query, 8041) };
      case 'clients':
        return { ...head('clients'), ...listed(sampleClients, query) };
      case 'names':
        return { ...head('names'), ...listed(names, query) };
      case 'servers':
        return { ...head('servers'), ...listed(servers, query) };
      case 'findings':
        return {
          ...head('findings'),
          ...listed(sampleFindings, query),
          checkedMs: AT - 1000,
          excluded: [
            {
              code: 'ND3002',
              name: 'a full conntrack table',
              reason: 'other flows of the same nodes begin without loss',
            },
            {
              code: 'ND3004',
              name: 'a network policy',
              reason: 'clients that lose queries are answered as well',
            },
          ],
          unknown: [
            {
              code: 'ND4001',
              name: 'a wrong cluster domain',
              reason: 'no configuration was given',
            },
          ],
        };
    }
  }
}
