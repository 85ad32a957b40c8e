/**
 * The verbs of ndots by name, and which of them a command line means. Imports nothing: `main.ts`
 * asks before anything is loaded.
 */

/** In the order in which help lists them. */
const summaries = {
  serve: 'cluster DNS server; reads a Corefile, takes the flags of coredns',
  'node-cache': 'DNS cache of a node; takes the flags of NodeLocal DNSCache',
  trace: 'every query a given client would send for a name, and why',
  query: 'one plain DNS query, in dig’s or doggo’s spelling',
  lint: 'what is wrong with a Corefile, and with what runs it',
  capture: 'queries and replies as they pass: live, from captures, dnstap, logs',
  top: 'what happens now, in a terminal: lookups, clients, servers, findings',
  console: 'the same in a browser, with charts and details',
  diff: 'which answers a change of the Corefile changes',
  plan: 'what a lower ndots or final dots save, and which names break',
  doctor: 'what is wrong with DNS: from captures, logs and counters to causes',
  cache: 'what servers keep under a name, and that they forget it',
  etcd: 'records of services in etcd (SkyDNS): put, get, list, rm',
  lab: 'failures of DNS played in network namespaces; kube-proxy’s rules',
  rollout: 'what a rollout of the DNS pods loses: predicted, and played',
  check: 'whether DNS does what clients need: every replica, TCP, pairs …',
  size: 'how many replicas, by the cluster or by what is measured',
  webhook: 'dnsConfig of pods by annotation: admission webhook or policy',
  exec: 'a verb in the network of a pod, in an ephemeral container',
  bench: 'a load as clients make it, against one server or two',
  completion: 'completion script for bash, zsh, fish or kubectl',
  version: 'version, runtime, and which transports this machine gives',
} as const;

export type VerbName = keyof typeof summaries;

/** Verb → what it is for, in one line. */
export const verbSummaries: ReadonlyMap<string, string> = new Map(Object.entries(summaries));

/** The verbs in the order in which help lists them. */
export const verbNames: readonly VerbName[] = Object.keys(summaries) as VerbName[];

/** Whether there is a verb of this name. */
export function isVerb(name: string): name is VerbName {
  return Object.hasOwn(summaries, name);
}

/**
 * The verb that words begin with, whether or not there is one, and the words that are its own.
 * coredns's flags (`-conf …`) are those of `serve`.
 */
export function splitVerb(words: readonly string[]): {
  readonly verb: string;
  readonly own: readonly string[];
} {
  const [first = '', ...rest] = words;
  return first.startsWith('-') ? { verb: 'serve', own: words } : { verb: first, own: rest };
}

const helpWords: ReadonlySet<string> = new Set(['--help', '-help', '-h']);

/** Whether the words ask for help instead; words behind `--` belong to another program. */
export function wantsHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return (end < 0 ? words : words.slice(0, end)).some((word) => helpWords.has(word));
}

/**
 * Whether a command line starts a server, which does not end by itself and takes threads of its
 * own.
 */
export function startsServer(words: readonly string[]): boolean {
  const { verb, own } = splitVerb(words);
  if (verb !== 'serve' && verb !== 'node-cache') return false;
  return !wantsHelp(own) && !own.some((word) => /^--?(?:version|plugins)$/.test(word));
}
