/** The figures in docs/figures.md, with their meaning, source and goals. */
import type { Goal } from '../../bench/kit/figures.ts';

export interface FigureRow {
  readonly what: string;
  /** The figure's name in the benchmark. */
  readonly figure: string;
  /** The program or condition that it is compared with. */
  readonly peer?: string;
  readonly goal?: Goal;
  /** True if the recorded ratio is the peer's value divided by ndots' value. The page shows the inverse. */
  readonly isInverse?: true;
}

export interface FigureGroup {
  readonly title: string;
  /** The benchmark's name. */
  readonly benchmark: string;
  readonly about: string;
  readonly rows: readonly FigureRow[];
}

const same = 'the same server, undisturbed';

export const figureGroups: readonly FigureGroup[] = [
  {
    title: 'Answers from memory',
    benchmark: 'serve',
    about: "5 000 service names, all hits, kubeadm's Corefile, one worker.",
    rows: [
      {
        what: 'CPU time per query',
        figure: 'CPU per query, ndots : unbound',
        peer: 'Unbound, one thread, the same names as local data',
        goal: { atMost: 1 },
      },
      {
        what: 'CPU time per query',
        figure: 'CPU per query, ndots : C echo',
        peer: 'a C program that echoes with recvmmsg and sendmmsg',
        goal: { atMost: 1.6 },
      },
      {
        what: 'replies per second',
        figure: 'replies/s, ndots : unbound',
        peer: 'Unbound',
        goal: { atLeast: 1 },
      },
      {
        what: 'CPU time with one third AAAA and one third NXDOMAIN from search paths',
        figure: 'CPU per query, mix : all hits',
        peer: 'all hits',
        goal: { atMost: 1.15 },
      },
    ],
  },
  {
    title: 'TCP',
    benchmark: 'tcp',
    about: 'Many queries per connection.',
    rows: [
      {
        what: 'replies per second',
        figure: 'replies/s, ndots : bind',
        peer: 'BIND, one thread',
        goal: { atLeast: 1 },
      },
      { what: 'CPU time per query', figure: 'CPU per query, ndots : bind', peer: 'BIND' },
    ],
  },
  {
    title: 'TLS and HTTPS for clients',
    benchmark: 'encrypted',
    about: '1 000 names, 100 queries in flight.',
    rows: [
      {
        what: 'TLS, 4 busy connections, CPU time per query',
        figure: 'CPU per query over tls, 4 clients, coredns : ndots',
        peer: 'CoreDNS, one CPU',
        isInverse: true,
      },
      {
        what: 'TLS, 20 connections',
        figure: 'CPU per query over tls, 20 clients, coredns : ndots',
        peer: 'CoreDNS',
        isInverse: true,
        goal: { atMost: 0.5 },
      },
      {
        what: 'TLS, 4 busy connections',
        figure: 'CPU per query over tls, 4 clients, ndots : unbound',
        peer: 'Unbound',
      },
      {
        what: 'HTTPS, GET, one reply per TLS record',
        figure: 'CPU per query over https, dnsperf, coredns : ndots',
        peer: 'CoreDNS',
        isInverse: true,
      },
      {
        what: 'HTTPS, POST, 20 connections with 5 streams each',
        figure: 'CPU per query over https, h2load, coredns : ndots',
        peer: 'CoreDNS',
        isInverse: true,
      },
    ],
  },
  {
    title: 'Forwarded queries',
    benchmark: 'forward',
    about:
      'Cache misses, medians of nine rounds. dnsdist checks only the ID and the question, and uses one source port by default, while ndots uses 256 random ports.',
    rows: [
      {
        what: 'CPU time per query',
        figure: 'CPU per query, coredns : ndots',
        peer: 'CoreDNS, one CPU',
        isInverse: true,
      },
      {
        what: 'CPU time per query, both with `cache`',
        figure: 'CPU per query, coredns : ndots, with cache',
        peer: 'CoreDNS',
        isInverse: true,
      },
      {
        what: 'CPU time per query, with `cache`',
        figure: 'CPU per query, ndots with cache : without',
        peer: 'ndots without `cache`',
        goal: { atMost: 1.25 },
      },
      {
        what: 'CPU time per query',
        figure: 'CPU per query, ndots : bind',
        peer: 'BIND, one thread',
      },
      {
        what: 'CPU time per query',
        figure: 'CPU per query, ndots : dnsdist',
        peer: 'dnsdist, one thread, one source port',
        goal: { atMost: 1.1 },
      },
      {
        what: 'CPU time per query',
        figure: 'CPU per query, ndots : dnsdist with 256 ports',
        peer: 'dnsdist with 256 source ports',
      },
    ],
  },
  {
    title: 'Forwarded over TLS and HTTPS',
    benchmark: 'forward-encrypted',
    about: 'Cache misses.',
    rows: [
      {
        what: 'TLS, CPU time per query',
        figure: 'CPU per query over tls, coredns : ndots',
        peer: 'CoreDNS',
        isInverse: true,
      },
      {
        what: 'TLS, CPU time per query',
        figure: 'CPU per query over tls, ndots : dnsdist',
        peer: 'dnsdist',
      },
      {
        what: 'HTTPS, CPU time per query',
        figure: 'CPU per query over https, coredns : ndots',
        peer: 'CoreDNS',
        isInverse: true,
      },
    ],
  },
  {
    title: 'Changes in the cluster',
    benchmark: 'freshness',
    about: '500 changes per second at the API server.',
    rows: [
      {
        what: 'from a change to the first changed answer, p50',
        figure: 'change to first changed answer, p50',
      },
      {
        what: 'p99',
        figure: 'change to first changed answer, p99',
        goal: { atMost: 20 },
      },
    ],
  },
  {
    title: 'Listing a large cluster',
    benchmark: 'relist',
    about:
      'p99.9 while 10 000 Services, 100 000 endpoints and 100 000 pods are listed again, median of four rounds.',
    rows: [
      {
        what: 'two CPUs, 10 000 queries per second',
        figure: 'p99.9, listed again : undisturbed, all CPUs',
        peer: same,
        goal: { atMost: 2 },
      },
      {
        what: 'limit of one CPU',
        figure: 'p99.9, listed again : undisturbed, limit of 1 CPU',
        peer: same,
        goal: { atMost: 2 },
      },
      {
        what: 'limit of half a CPU',
        figure: 'p99.9, listed again : undisturbed, limit of half a CPU',
        peer: same,
        goal: { atMost: 2 },
      },
      {
        what: 'two CPUs, only another program reads the lists',
        figure: 'p99.9, lists read by another program : undisturbed',
        peer: same,
      },
    ],
  },
  {
    title: 'Reloads',
    benchmark: 'reload',
    about: '20 reloads at 20 000 queries per second.',
    rows: [
      {
        what: 'wrong answers',
        figure: 'queries answered wrongly over reloads',
        goal: { atMost: 0 },
      },
      { what: 'lost queries', figure: 'queries lost over reloads', goal: { atMost: 0 } },
    ],
  },
  {
    title: 'Start',
    benchmark: 'start',
    about: 'The example cluster, from exec to the first correct answer.',
    rows: [
      { what: 'time', figure: 'exec to first answer, median', goal: { atMost: 180 } },
      { what: 'CPU time of all threads', figure: 'CPU time to first answer, median' },
      {
        what: 'time of an empty Node program',
        figure: 'empty program of the runtime, median',
      },
    ],
  },
  {
    title: 'Memory',
    benchmark: 'memory',
    about:
      'Resident memory; the autopath rows have 10 000 Services, 100 000 endpoints and 100 000 pods. The working set [charged to the control group](decisions/memory.md#as-the-control-group-counts-it) is lower.',
    rows: [
      { what: 'idle, example cluster', figure: 'idle, example cluster', goal: { atMost: 75 } },
      {
        what: 'an empty Node program with one worker thread',
        figure: 'empty program with a worker thread',
      },
      { what: '`autopath @name`', figure: 'autopath @name, steady' },
      { what: '`autopath @name`, peak of a relist', figure: 'autopath @name, peak at a relist' },
      {
        what: '`autopath @kubernetes`, `pods verified`',
        figure: 'autopath @kubernetes, verified, steady',
      },
      {
        what: 'the same, peak of a relist',
        figure: 'autopath @kubernetes, verified, peak at a relist',
      },
    ],
  },
  {
    title: 'Node cache',
    benchmark: 'node-cache',
    about: '10 000 queries per second from a pod; 9 000 names.',
    rows: [
      {
        what: 'CPU time of a cached query',
        figure: 'CPU of a cached query, node-cache : serve',
        peer: '`serve` with the same Corefile in the same network',
      },
      {
        what: 'memory with a full cache, including helpers',
        figure: 'memory with a full cache, helpers included',
      },
      {
        what: 'time without answers after SIGSTOP',
        figure: 'longest time without an answer after SIGSTOP',
      },
      {
        what: 'time without answers after SIGKILL',
        figure: 'longest time without an answer after SIGKILL',
      },
    ],
  },
  {
    title: 'Zones',
    benchmark: 'zone',
    about: '100 000 names; an AXFR of a million records to kdig.',
    rows: [
      {
        what: 'CPU time per query',
        figure: 'CPU per query, ndots : knot',
        peer: 'Knot, one thread',
      },
      {
        what: 'CPU time per query',
        figure: 'CPU per query, ndots : nsd',
        peer: 'NSD, one process',
      },
      {
        what: 'records per second by AXFR',
        figure: 'records/s by AXFR, ndots : bind',
        peer: 'BIND',
      },
      {
        what: 'memory for a million names',
        figure: 'memory : the text of the zone',
        peer: 'the zone as text',
        goal: { atMost: 2 },
      },
    ],
  },
  {
    title: 'Zone transfers',
    benchmark: 'zone-transfer',
    about:
      'p99.9 at 10 000 queries per second during continuous transfers of a zone with 200 000 names. [Why the goals are missed](decisions/scheduling.md).',
    rows: [
      {
        what: 'ndots fetches the zone',
        figure: 'p99.9, AXFR in : undisturbed',
        peer: same,
        goal: { atMost: 2 },
      },
      {
        what: 'ndots sends the zone',
        figure: 'p99.9, AXFR out : undisturbed',
        peer: same,
        goal: { atMost: 2 },
      },
      {
        what: 'BIND sends the zone to the same client',
        figure: 'p99.9, AXFR from BIND to the same client : undisturbed',
        peer: same,
      },
    ],
  },
  {
    title: 'Signed zones',
    benchmark: 'dnssec',
    about: 'The `dnssec` plugin.',
    rows: [
      {
        what: 'CPU time of a signed answer',
        figure: 'CPU per query, signed : unsigned',
        peer: 'unsigned',
        goal: { atMost: 1.25 },
      },
      {
        what: 'CPU time of a signed answer',
        figure: 'CPU per signed query, ndots : CoreDNS',
        peer: 'CoreDNS',
      },
      {
        what: 'CPU time of a new signature',
        figure: 'CPU per new signature, ndots : CoreDNS',
        peer: 'CoreDNS',
      },
    ],
  },
  {
    title: 'etcd',
    benchmark: 'etcd',
    about: '100 000 keys; etcd is killed at 20 000 queries per second.',
    rows: [
      { what: 'CPU time per query', figure: 'CPU per query, ndots : CoreDNS', peer: 'CoreDNS' },
      { what: 'memory for the keys', figure: '100000 keys over idle' },
      { what: 'queries lost while etcd was down', figure: 'lost of these' },
      {
        what: 'from a put to its answer, median',
        figure: 'put to answered, median (asked every 5 ms)',
      },
    ],
  },
  {
    title: 'Plugins',
    benchmark: 'plugins',
    about: 'CPU time per query with ten rules that do not match, or with one directive.',
    rows: (
      [
        'rewrite, exact',
        'rewrite, regex',
        'template',
        'acl',
        'dns64',
        'log',
        'dnstap',
        'rrl',
        'fairqueue',
        'visibility',
      ] as const
    ).map((plugin) => ({
      what: plugin,
      figure: `CPU per query, ${plugin} : without`,
      peer: 'without it',
      goal: { atMost: 1.25 },
    })),
  },
  {
    title: 'Captures',
    benchmark: 'capture',
    about: 'A file of 1 000 000 packets.',
    rows: [
      { what: '`doctor`', figure: 'doctor: 1,000,000 packets', goal: { atMost: 10 } },
      { what: '`doctor`, memory', figure: 'doctor: memory', goal: { atMost: 200 } },
      {
        what: '`doctor`, CPU time',
        figure: 'doctor: CPU time, of tcpdump’s',
        peer: 'tcpdump, text',
      },
      { what: '`doctor`, 2% of the packets lost', figure: 'doctor, losses: 1,000,000 packets' },
      { what: '`capture -o none`', figure: 'capture: 1,000,000 packets' },
      {
        what: '`capture -o none`, CPU time',
        figure: 'capture: CPU time, of tshark’s',
        peer: 'tshark',
      },
    ],
  },
  {
    title: 'Live capture',
    benchmark: 'capture-live',
    about: '20 000 packets per second, one CPU.',
    rows: [
      { what: '`capture`, lost packets', figure: 'capture: packets lost, the most of a run' },
      { what: '`doctor`, lost packets', figure: 'doctor: packets lost, the most of a run' },
      { what: '`doctor`, share of one CPU', figure: 'doctor: of one CPU' },
      {
        what: '`watch serve`, share of one CPU',
        figure: 'watch serve: of one CPU',
        goal: { atMost: 50 },
      },
      {
        what: '`watch serve`, memory',
        figure: 'watch serve: resident memory',
        goal: { atMost: 150 },
      },
      { what: '`top`, share of one CPU', figure: 'top: of one CPU', goal: { atMost: 50 } },
      {
        what: '`top`, memory after a minute',
        figure: 'top: resident memory after a minute',
        goal: { atMost: 150 },
      },
      {
        what: '`capture --process`, CPU time',
        figure: '-o none --process : -o none, CPU time',
        peer: '`capture` without it, 20 000 queries per second',
        goal: { atMost: 1.3 },
      },
      {
        what: '`capture --process --bpf`, CPU time',
        figure: '-o none --process --bpf : -o none, CPU time',
        peer: '`capture` without it, 20 000 queries per second',
        goal: { atMost: 1.3 },
      },
    ],
  },
  {
    title: 'Console',
    benchmark: 'console-page',
    about: 'The page in Chromium, with 100 000 lookups in its table.',
    rows: [
      {
        what: 'files of the page, compressed',
        figure: 'console page: first files, compressed',
        goal: { atMost: 60 },
      },
      {
        what: 'first paint',
        figure: 'console page: first paint, median',
        goal: { atMost: 300 },
      },
      {
        what: 'JavaScript heap',
        figure: 'console page: JavaScript heap with 100 000 lookups',
        goal: { atMost: 60 },
      },
      {
        what: 'longest task, CPU time',
        figure: 'console page: longest task, CPU time',
        goal: { atMost: 50 },
      },
    ],
  },
  {
    title: 'A server that a console reads',
    benchmark: 'console-tabs',
    about: '20 000 queries per second, one worker.',
    rows: [
      {
        what: 'CPU time per query, no reader',
        figure: 'console without a reader : no console, CPU per query',
        peer: 'the same server without the directive `console`',
        goal: { atMost: 1.01 },
      },
      {
        what: 'CPU time per query, ten open tabs',
        figure: 'console with ten tabs : no console, CPU per query',
        peer: 'the same server without the directive `console`',
        goal: { atMost: 1.05 },
      },
    ],
  },
  {
    title: 'Latency of a server that a console reads',
    benchmark: 'console-latency',
    about:
      'p99.9 at 20 000 queries per second, one worker, with ten open tabs. Median of seven rounds.',
    rows: [
      {
        what: 'console with ten tabs',
        figure: 'p99.9, console with ten tabs : no reader',
        peer: 'the same server without a reader, in the same round',
        goal: { atMost: 1.2 },
      },
      {
        what: 'no reader, for comparison',
        figure: 'p99.9, no reader : no reader',
        peer: 'the same server without a reader, in the same round',
      },
    ],
  },
  {
    title: 'Live view',
    benchmark: 'live-model',
    about: 'The model behind `top` and `console`, without the capture.',
    rows: [
      {
        what: 'share of one CPU at 20 000 packets per second',
        figure: 'live model: of one CPU, at 20 000 packets a second',
        goal: { atMost: 50 },
      },
      { what: 'memory', figure: 'live model: memory of the process, without the capture' },
    ],
  },
  {
    title: 'Hash flooding',
    benchmark: 'hash-flood',
    about: 'Names that an attacker chose so that they collide.',
    rows: [
      {
        what: 'CPU time of a query',
        figure: 'names made to collide, to random ones',
        peer: 'random names',
        goal: { atMost: 1.2 },
      },
    ],
  },
];
