/**
 * Command names, and which command a command line selects. Imports nothing, because `main.ts` needs it before anything
 * else is loaded.
 */

/** In the order of the help text. */
const summaries = {
  serve: 'cluster DNS server: reads a Corefile, accepts CoreDNS’s flags',
  'node-cache': 'DNS cache on a node: accepts NodeLocal DNSCache’s flags',
  trace: 'show every query that a client sends for a name, and why',
  query: 'send one DNS query, with the syntax of dig or doggo',
  lint: 'find errors in a Corefile and related manifests',
  capture: 'show queries and replies: live, or from captures, dnstap and logs',
  top: 'watch lookups, clients, servers and findings live in a terminal',
  console: 'watch the same in a browser, with charts and details',
  watch: 'send a node’s DNS packets to top and console (watch serve)',
  diff: 'show which answers change between two Corefiles',
  plan: 'show what a lower ndots or trailing dots would save or break',
  doctor: 'find out why DNS is slow or broken, from captures, logs, metrics',
  cache: 'show or flush what servers have cached for a name',
  etcd: 'manage service records in etcd (SkyDNS): put, get, list, rm',
  lab: 'reproduce DNS incidents in network namespaces',
  rollout: 'predict and rehearse which queries a DNS pod rollout loses',
  check: 'test DNS as clients use it: every replica, TCP, A/AAAA pairs …',
  size: 'compute the number of DNS replicas from cluster size or metrics',
  webhook: 'set pods’ dnsConfig by annotation: admission webhook or policy',
  exec: "run a verb in a pod's network, in an ephemeral container",
  node: 'run a verb on a node, such as capture --process, in a separate pod',
  bench: 'load-test one server, or compare two, with realistic queries',
  completion: 'print a completion script for bash, zsh, fish or kubectl',
  version: 'show the version, the runtime, and this machine’s transports',
} as const;

export type VerbName = keyof typeof summaries;

/** One-line summaries by command name. */
export const verbSummaries: ReadonlyMap<string, string> = new Map(Object.entries(summaries));

/** Command names in help text order. */
export const verbNames: readonly VerbName[] = Object.keys(summaries) as VerbName[];

export function isVerb(name: string): name is VerbName {
  return Object.hasOwn(summaries, name);
}

/**
 * The command that the words start with, whether or not it exists, and its own words. coredns's flags (`-conf …`)
 * belong to `serve`.
 */
export function splitVerb(words: readonly string[]): {
  readonly verb: string;
  readonly own: readonly string[];
} {
  const [first = '', ...rest] = words;
  return first.startsWith('-') ? { verb: 'serve', own: words } : { verb: first, own: rest };
}

const helpWords: ReadonlySet<string> = new Set(['--help', '-help', '-h']);

/** True if the words request help. Those after `--` belong to another program. */
export function wantsHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return (end < 0 ? words : words.slice(0, end)).some((word) => helpWords.has(word));
}

/** True if the command line starts a server, which runs until it receives a signal and has threads of its own. */
export function startsServer(words: readonly string[]): boolean {
  const { verb, own } = splitVerb(words);
  if (verb !== 'serve' && verb !== 'node-cache') return false;
  return !wantsHelp(own) && !own.some((word) => /^--?(?:version|plugins)$/.test(word));
}
