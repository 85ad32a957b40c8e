/** Steps that cause network faults, inspect the kernel's state, and clear the faults again. */
import { countConnections, forgetConnections, insertFailed } from '../conntrack.ts';
import {
  blockTcp,
  limitConnections,
  limitPackets,
  loseSecondOfPair,
  losePackets,
  lostBy,
  startFault,
  type Undo,
} from '../faults.ts';
import { machineName, serverAddress } from './ask-steps.ts';
import type { Results } from './expression.ts';
import {
  number,
  oneOrMore,
  optional,
  required,
  scalar,
  text,
  time,
  whole,
  word,
} from '../../../server/kube/manifests/yaml-shape.ts';
import { named, type StepKind } from './story-reading.ts';
import { bareKind, kind, type StoryRun } from './step.ts';

const node = required(named('node', 'NODE'), 'the node that has the fault');
const lost = { lost: 'packets dropped so far' } as const;
const needs = { results: lost, programs: ['nft'] } as const;
const nobody = optional(
  named('server', 'IP|SERVICE|POD'),
  null,
  'only packets to this destination',
);

/** An address, a service or a pod. Null stands for any. */
function addressOf({ lab }: Pick<StoryRun, 'lab'>, name: string | null): string | null {
  return name === null ? null : serverAddress(lab, name);
}

/** Starts a fault. The same name is used for its step, the fault itself, and its nftables table. */
function begin(run: StoryRun, node: string, name: string, body: string): Results {
  // Several nodes may have a fault with the same name.
  const undos = run.undo.get(name) ?? new Map<string, Undo>();
  run.undo.set(name, undos);
  undos.set(node, startFault(run.lab, node, name, body));
  let last = 0;
  return {
    lost: () => {
      if (undos.has(node)) last = lostBy(run.lab, node, name);
      return last;
    },
  };
}

const loseSecond = kind({
  help: 'drops the second of two packets sent to port 53 from one port in quick succession, like the A/AAAA race',
  fields: {
    node,
    within: optional(time(0, 10_000), 20, 'the longest time between the two packets'),
  },
  ...needs,
  act: ({ node: where, within }, run, name) => begin(run, where, name, loseSecondOfPair(within)),
});

const limit = kind({
  help: 'limits the packets per second that reach an address and drops the others, like a cloud provider’s limit',
  fields: {
    node,
    to: required(named('server', 'IP|SERVICE|POD'), 'the destination'),
    rate: required(whole(1, 1_000_000), 'packets per second'),
  },
  ...needs,
  act: ({ node: where, to, rate }, run, name) =>
    begin(run, where, name, limitPackets(serverAddress(run.lab, to), rate)),
});

const connectionLimit = kind({
  help: 'limits the number of tracked connections and drops packets of all others, like a full table',
  fields: { node, most: required(whole(1, 1_000_000), 'connections') },
  ...needs,
  act: ({ node: where, most }, run, name) => begin(run, where, name, limitConnections(most)),
});

const block = kind({
  help: 'drops TCP from a pod to port 53, or rejects it with a reset',
  fields: {
    pod: required(named('pod', 'POD'), 'the pod'),
    how: optional(word(['drop', 'reject']), 'drop', 'drop silently, or reject with a reset'),
  },
  ...needs,
  act({ pod, how }, run, name) {
    const { node: where, addresses } = run.lab.pod(pod);
    const [from = ''] = addresses;
    return begin(run, where, name, blockTcp(from, how));
  },
});

const lose = kind({
  help: 'drops all packets that a node forwards, or a share of them',
  fields: {
    node,
    share: optional(number(0, 1), 1, 'the share of packets to drop; 0.1 is one in ten'),
    from: optional(named('server', 'IP|SERVICE|POD'), null, 'only packets from this source'),
    to: nobody,
    protocol: optional(word(['udp', 'tcp']), null, 'only this protocol'),
    port: optional(whole(1, 65_535), null, 'only packets to this port'),
  },
  ...needs,
  act({ node: where, share, from, to, protocol, port }, run, name) {
    const match = { from: addressOf(run, from), to: addressOf(run, to), protocol, port };
    return begin(run, where, name, losePackets(match, share));
  },
});

const undo = bareKind({
  help: 'removes faults, given the names of their steps',
  bare: oneOrMore(text),
  act(names, run) {
    for (const name of names) {
      const found = run.undo.get(name);
      if (found === undefined) throw new RangeError(`there is no fault "${name}" to undo`);
      // Reads the counter one last time before its table is removed.
      const { lost: taken } = run.results.get(name) ?? {};
      if (typeof taken === 'function') taken();
      run.undo.delete(name);
      for (const end of found.values()) end();
      found.clear();
    }
  },
});

const connections = kind({
  help: "reads a node's connection table",
  fields: { node: required(named('node', 'NODE'), 'the node') },
  programs: ['conntrack'],
  results: {
    count: 'UDP and TCP connections',
    insertFailed: 'packets that the kernel dropped because two tried to create the same connection',
  },
  act: ({ node: where }, { lab }) => ({
    count: countConnections(lab, where),
    insertFailed: insertFailed(lab, where),
  }),
});

const forget = kind({
  help: 'deletes UDP entries from the connection table, as kube-proxy does when an endpoint is removed',
  fields: {
    node: required(named('node', 'NODE'), 'the node'),
    to: nobody,
    endpoint: optional(named('server', 'IP|POD'), null, 'only entries that lead to this endpoint'),
  },
  programs: ['conntrack'],
  results: { count: 'deleted entries' },
  act: ({ node: where, to, endpoint }, run) => ({
    count: forgetConnections(run.lab, where, addressOf(run, to), addressOf(run, endpoint)),
  }),
});

const set = kind({
  help: 'changes a machine’s kernel setting under /proc/sys/net',
  fields: {
    on: required(named('machine', 'POD|NODE'), 'the machine'),
    key: required(text, 'the key as in sysctl: net.ipv6.conf.all.disable_ipv6'),
    value: required(scalar, 'the value'),
  },
  act({ on, key, value }, { lab }) {
    const path = key.replaceAll('.', '/');
    if (!/^net\/[\w/-]+$/.test(path)) throw new RangeError(`"${key}" is not a network setting`);
    lab.network.set(machineName(lab, on), path, value);
  },
  model({ on, key, value }, { ipv4Only }) {
    if (key === 'net.ipv6.conf.all.disable_ipv6' && value === '1') ipv4Only.add(on);
  },
});

const link = kind({
  help: 'disconnects a machine, or connects it again',
  fields: {
    of: required(named('machine', 'POD|NODE'), 'the machine'),
    state: required(word(['up', 'down']), 'the new state'),
  },
  act({ of, state }, { lab }) {
    lab.network.setLink(machineName(lab, of), state);
  },
});

export const faultSteps: Readonly<Record<string, StepKind>> = {
  loseSecondOfPair: loseSecond,
  losePackets: lose,
  limitPackets: limit,
  limitConnections: connectionLimit,
  blockTcp: block,
  undo,
  connections,
  forgetConnections: forget,
  set,
  link,
};
