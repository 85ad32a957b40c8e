/**
 * Steps that send queries, including client lookups, single queries, streams and programs, and steps that capture
 * packets.
 */
import { didYouMean } from '../../../server/base/problem.ts';
import { clientLines } from '../../resolver/clients.ts';
import { rcodeName } from '../../../server/wire/iana.ts';
import { load, longestOutageMs, type LoadResult } from '../load.ts';
import { GETENT, look, modelled, planned, type Looked } from '../lookups.ts';
import { DNS_SERVICE } from '../cluster-plan.ts';
import { findPod, type LabCluster } from '../cluster.ts';
import { addressesOf, UdpClient, type QueryResult } from '../udp-client.ts';
import type { Results } from './expression.ts';
import {
  address,
  flag,
  listOf,
  number,
  oneOrMore,
  optional,
  required,
  text,
  time,
  whole,
  word,
  type YamlShape,
} from '../../../server/kube/manifests/yaml-shape.ts';
import { named, type StepKind } from './story-reading.ts';
import { steps } from './step-list.ts';
import { kind, runSteps, type ModelRun, type StoryRun, type StoryStep } from './step.ts';
import { pause } from '../pause.ts';

/** A version after the name selects that version's model. */
const client: YamlShape<string> = {
  placeholder: 'CLIENT[@VERSION]',
  read(value, path, reading) {
    const label = text.read(value, path, reading);
    const [name = ''] = label.split('@');
    const known = [...clientLines.map((line) => line.name), GETENT];
    if (label === '' || known.includes(name)) return label;
    reading.tell(
      path,
      `there is no client "${label}"`,
      didYouMean(name, known, `Known: ${known.join(', ')}`),
    );
    return label;
  },
};

const types = ['A', 'AAAA', 'SRV', 'PTR', 'TXT', 'MX', 'NS', 'SOA', 'CNAME'] as const;

const pod = required(named('pod', 'POD'), 'a pod in the cluster: NAME or NAMESPACE/NAME');
const machine = required(named('machine', 'POD|NODE|internet'), 'a pod, a node, or the internet');
const server = optional(
  named('server', 'IP|SERVICE|POD'),
  DNS_SERVICE,
  'the server: an address, a service, or a pod',
);
const during = optional(steps, [], 'steps that run at the same time');

export function machineName(lab: LabCluster, name: string): string {
  if (name === 'internet' || lab.nodes.has(name)) return name;
  return lab.pod(name).name;
}

/** An address, a service or a pod. */
export function serverAddress(lab: LabCluster, name: string): string {
  if (/^[\d.]+$|:/.test(name)) return name;
  const service = lab.serviceAddress(name);
  return service === '' ? (lab.pod(name).addresses[0] ?? '') : service;
}

const askedResults = {
  sent: 'queries sent',
  answered: 'queries with a NOERROR reply',
  replied: 'queries with any reply',
  lost: 'queries without a reply',
  seconds: 'duration of the last query; for a stream, the slowest reply',
  outage: 'longest time without a reply, in seconds',
  code: 'the last reply code: NOERROR, NXDOMAIN …; SILENCE if there was no reply',
  addresses: 'addresses in the last reply, separated by spaces',
} as const;

function askedFound(all: readonly QueryResult[], seconds: number): Results {
  const last = all.at(-1);
  const replied = all.filter(({ rcode }) => rcode !== null).length;
  return {
    sent: all.length,
    answered: all.filter(({ rcode }) => rcode === 0).length,
    replied,
    lost: all.length - replied,
    seconds,
    outage: longestOutageMs(all) / 1000,
    code: codeOf(last),
    addresses: last === undefined ? '' : addressesOf(last).join(' '),
  };
}

function codeOf(asked: QueryResult | undefined): string {
  return asked?.rcode === null || asked === undefined ? 'SILENCE' : rcodeName(asked.rcode);
}

const lookup = kind({
  help: "looks up a name from a pod, following the pod's resolv.conf",
  fields: {
    pod,
    name: required(text, 'the name as the application spells it'),
    client: optional(
      client,
      'glibc',
      "the resolver; glibc, musl, go and evdns are real if they can be compiled, and others are models. getent is this machine's glibc, and queries AAAA only if the pod has IPv6",
    ),
    real: optional(flag, true, 'false: always use the model'),
  },
  results: {
    found: 'whether addresses were found',
    seconds: 'duration',
    addresses: 'all addresses, separated by spaces',
    count: 'number of addresses',
    error: 'the error that the program got, or empty',
    queries: 'queries sent',
    tcp: 'queries over TCP',
    connections: 'TCP connections opened',
    types: 'record types queried, separated by spaces',
    last: 'the last reply: NXDOMAIN or addresses; DROP if there was none',
    names: 'number of different names queried',
    asked: 'these names in order, separated by spaces',
    who: 'the real client or its model, whichever did the lookup',
  },
  async act({ pod: where, name, client: who, real }, run) {
    const { stage, lab } = run;
    return lookupFound(await (real ? look : modelled)(stage, lab, where, who, name), run);
  },
  async model({ pod: where, name, client: who }, run) {
    const { pods, plan } = run;
    const found = findPod(
      pods.map((each) => ({ each, namespace: each.namespace, pod: each.name })),
      where,
    );
    const looked = await planned(who, name, run.script, {
      pod: found.each,
      nodeResolvConf: plan.nodeResolvConf ?? '',
      ipv6: plan.ipv6 !== false && !run.ipv4Only.has(where),
    });
    return lookupFound(looked, run);
  },
});

function lookupFound(looked: Looked, run: StoryRun | ModelRun): Results {
  if (run.shown.length === 0) run.shown = looked.packets;
  const { queries, addresses, packets } = looked;
  const names = [...new Set(queries.map((query) => query.name))];
  return {
    found: looked.ok,
    seconds: looked.seconds,
    addresses: addresses.join(' '),
    count: addresses.length,
    error: looked.error ?? '',
    queries: queries.length,
    tcp: queries.filter(({ protocol }) => protocol === 'tcp').length,
    connections: packets.filter((packet) => packet.kind === 'syn').length,
    types: [...new Set(queries.map(({ type }) => type))].toSorted().join(' '),
    last: queries.at(-1)?.answer ?? '',
    names: names.length,
    asked: names.join(' '),
    who: looked.who,
  };
}

const query = kind({
  help: 'sends a UDP query from a pod or node, once or several times from one port',
  fields: {
    from: machine,
    name: required(text, 'the full name'),
    type: optional(word(types), 'A', 'record type'),
    server,
    port: optional(whole(0, 65_535), 0, 'source port; 0: any'),
    times: optional(whole(1, 10_000), 1, 'number of queries, one after the other'),
    every: optional(time(), 0, 'pause between queries'),
    wait: optional(time(), 1000, 'time after which a query counts as lost'),
    mixedCase: optional(flag, false, 'whether each query mixes upper and lower case differently'),
  },
  results: { ...askedResults, spelled: 'replies that preserve the question’s spelling' },
  async act({ from, name, type, server: whom, port, times, every, wait, mixedCase }, { lab }) {
    const client = await UdpClient.open(
      lab.network.path(machineName(lab, from)),
      serverAddress(lab, whom),
      port,
    );
    const all: QueryResult[] = [];
    for (let count = 0; count < times; count++) {
      if (count > 0 && every > 0) await pause(every);
      all.push(await client.ask(mixedCase ? mixed(name, count) : name, type, wait));
    }
    client.close();
    const spelled = all.filter(({ sameSpelling }) => sameSpelling).length;
    return { ...askedFound(all, (all.at(-1)?.tookMs ?? 0) / 1000), spelled };
  },
});

function mixed(name: string, nth: number): string {
  const isCapital = (at: number): boolean => ((nth + 1) * 7 + at * 3) % 5 < 2;
  return name.replaceAll(/./g, (letter, at: number) =>
    isCapital(at) ? letter.toUpperCase() : letter,
  );
}

const waitUntil = kind({
  help: 'repeats a query until it gets a certain reply',
  fields: {
    from: machine,
    name: required(text, 'the full name'),
    type: optional(word(types), 'A', 'record type'),
    server,
    code: optional(text, 'NOERROR', 'the expected reply code'),
    address: optional(address, null, 'an address that the reply must contain'),
    every: optional(time(), 100, 'pause between queries'),
    limit: optional(time(), 30_000, 'time after which the step gives up'),
  },
  results: { seconds: 'duration', reached: 'whether the reply came in time', sent: 'queries sent' },
  async act({ from, name, type, server: whom, code, address: wanted, every, limit }, run) {
    const { lab } = run;
    const path = lab.network.path(machineName(lab, from));
    const client = await UdpClient.open(path, serverAddress(lab, whom));
    const began = performance.now();
    let [sent, reached] = [0, false];
    while (!reached && performance.now() - began < limit) {
      if (sent > 0) await pause(every);
      const asked = await client.ask(name, type, 1000);
      sent++;
      reached = codeOf(asked) === code && (wanted === null || addressesOf(asked).includes(wanted));
    }
    client.close();
    return { seconds: (performance.now() - began) / 1000, reached, sent };
  },
});

const stream = kind({
  help: 'sends queries from a pod or node at a steady rate, for a time or while other steps run',
  fields: {
    from: machine,
    name: required(text, 'the full name; {n} is replaced with a counter'),
    names: optional(
      whole(1, 1_000_000),
      1_000_000,
      'the counter starts again at 0 after this many numbers',
    ),
    server,
    rate: required(number(1, 20_000), 'queries per second'),
    for: optional(
      time(0, 120_000),
      null,
      'duration; by default, as long as the steps in during take',
    ),
    sockets: optional(whole(1, 4096), 16, 'number of source ports, used in turn'),
    wait: optional(time(), 1000, 'time after which a query counts as lost'),
    during,
  },
  results: { ...askedResults, share: 'answered divided by sent' },
  async act(
    { from, name, names, server: whom, rate, for: forMs, sockets, wait, during: inner },
    run,
  ) {
    const { lab } = run;
    const others = runSteps(inner, run);
    const [result] = await Promise.all([
      load({
        namespace: lab.network.path(machineName(lab, from)),
        server: serverAddress(lab, whom),
        perSecond: rate,
        seconds: forMs === null ? others : forMs / 1000,
        sockets,
        name: (index) => name.replaceAll('{n}', String(index % names)),
        waitMs: wait,
      }),
      others,
    ]);
    return streamFound(result);
  },
});

function streamFound({ all, answered, sent }: LoadResult): Results {
  const slowest = all.reduce(
    (most, { rcode, tookMs }) => (rcode === null ? most : Math.max(most, tookMs)),
    0,
  );
  return { ...askedFound(all, slowest / 1000), share: sent === 0 ? 0 : answered / sent };
}

const exec = kind({
  help: "runs one of this machine's programs in a pod or on a node",
  fields: {
    in: machine,
    command: required(
      oneOrMore(text),
      'a line for sh -c, or a list of words; in a line, ndots means this program',
    ),
    limit: optional(time(), 60_000, 'time after which it is killed'),
    during: optional(
      steps,
      [],
      'steps to run while the program runs; it is killed after the last one',
    ),
  },
  results: {
    code: 'exit code; -1 if a signal ended it',
    output: 'standard output without trailing whitespace',
    errors: 'standard error',
    lines: 'number of output lines',
    seconds: 'duration',
  },
  async act({ in: where, command, limit, during: inner }, run) {
    const { lab } = run;
    const place = placeOf(lab, where);
    const words = command.length === 1 ? shellLine(run.stage.ndots, command[0]!) : command;
    if (inner.length > 0) return besides(place, words, inner, run);
    const { code, stdout, stderr, tookMs } = await lab.processes.run(place, words, limit);
    return execFound(code, stdout, stderr, tookMs);
  },
});

function shellLine(ndots: readonly string[], line: string): readonly string[] {
  const quoted = ndots.map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  return ['sh', '-c', `ndots() { ${quoted.join(' ')} "$@"; }; ${line}`];
}

async function besides(
  place: ReturnType<typeof placeOf>,
  words: readonly string[],
  inner: readonly StoryStep[],
  run: StoryRun,
): Promise<Results> {
  const began = performance.now();
  const { program, output } = run.lab.processes.start(place, words);
  await runSteps(inner, run);
  const { code } = await program.stop('SIGKILL');
  return execFound(code, output(), '', performance.now() - began);
}

function execFound(code: number | null, stdout: string, stderr: string, tookMs: number): Results {
  const output = stdout.trimEnd();
  return {
    code: code ?? -1,
    output,
    errors: stderr.trimEnd(),
    lines: output === '' ? 0 : output.split('\n').length,
    seconds: tookMs / 1000,
  };
}

function placeOf(lab: LabCluster, name: string): { name: string; files: Record<string, string> } {
  if (name === 'internet' || lab.nodes.has(name)) return { name, files: {} };
  const { name: machineOf, files } = lab.pod(name);
  return { name: machineOf, files };
}

const capture = kind({
  help: "captures a link's packets while steps run, for the act's ladder diagram",
  fields: {
    on: machine,
    during: required(steps, 'the steps'),
    ports: optional(
      listOf(whole(1, 65_535), 16),
      [53],
      'source or destination ports of the packets',
    ),
    protocol: optional(word(['udp', 'tcp']), null, 'only these packets'),
    to: optional(address, null, 'only packets to this address'),
  },
  results: {
    packets: 'all packets',
    queries: 'query packets',
    replies: 'reply packets',
    names: 'number of different names queried',
    first: 'the first query, as A? NAME.',
    seconds: 'time from the first packet to the last',
    connections: 'TCP connections opened',
  },
  async act({ on, during: inner, ports, protocol, to }, run) {
    const filter = {
      ports,
      ...(protocol === null ? {} : { protocol }),
      ...(to === null ? {} : { to }),
    };
    const { packets } = await run.stage.capture(machineName(run.lab, on), filter, () =>
      runSteps(inner, run),
    );
    run.shown = packets;
    const queries = packets.filter(({ isQuery }) => isQuery);
    return {
      packets: packets.length,
      queries: queries.length,
      replies: packets.filter(({ kind: what }) => what === 'reply').length,
      names: new Set(queries.map(({ name }) => name.toLowerCase())).size,
      first: queries[0]?.text ?? '',
      seconds: (packets.at(-1)?.atMs ?? 0) / 1000,
      connections: packets.filter(({ kind: what }) => what === 'syn').length,
    };
  },
});

export const askSteps: Readonly<Record<string, StepKind>> = {
  lookup,
  query,
  stream,
  waitUntil,
  exec,
  capture,
};
