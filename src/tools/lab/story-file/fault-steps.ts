/** Steps that cause network faults, inspect the kernel's state, and remove faults again. */
import { countConnections, forgetConnections, insertFailed } from '../conntrack.ts';
import {
  blockTcp,
  limitConnections,
  limitPackets,
  loseSecondOfPair,
  losePackets,
  lostBy,
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
const lost = { lost: 'packets that it has taken by now' } as const;
const needs = { results: lost, programs: ['nft'] } as const;
const nobody = optional(named('server', 'IP|SERVICE|POD'), null, 'only packets to there');

/** Begins a fault. It has the name of its step, which is also that of its nftables table. */
function begin(run: StoryRun, node: string, name: string, make: (table: string) => Undo): Results {
  // Several nodes may have a fault of the same name.
  const undos = run.undo.get(name) ?? new Map<string, Undo>();
  run.undo.set(name, undos);
  undos.set(node, make(name));
  let last = 0;
  return {
    lost: () => {
      if (undos.has(node)) last = lostBy(run.lab, node, name);
      return last;
    },
  };
}

const loseSecond = kind({
  help: 'of two packets to port 53 that leave one port shortly after each other, the second is lost: the race of A and AAAA',
  fields: { node, within: optional(time(0, 10_000), 20, 'how shortly') },
  ...needs,
  act: ({ node: where, within }, run, name) =>
    begin(run, where, name, (table) => loseSecondOfPair(run.lab, where, within, table)),
});

const limit = kind({
  help: 'only this number of packets per second reach an address, and the others are lost: a cloud’s limit',
  fields: {
    node,
    to: required(named('server', 'IP|SERVICE|POD'), 'where they go'),
    rate: required(whole(1, 1_000_000), 'packets a second'),
  },
  ...needs,
  act: ({ node: where, to, rate }, run, name) =>
    begin(run, where, name, (table) =>
      limitPackets(run.lab, where, serverAddress(run.lab, to), rate, table),
    ),
});

const connectionLimit = kind({
  help: 'only this number of connections is tracked, and packets of others are lost: a full table',
  fields: { node, most: required(whole(1, 1_000_000), 'connections') },
  ...needs,
  act: ({ node: where, most }, run, name) =>
    begin(run, where, name, (table) => limitConnections(run.lab, where, most, table)),
});

const block = kind({
  help: 'TCP from a pod to port 53 is dropped, or refused with a reset',
  fields: {
    pod: required(named('pod', 'POD'), 'whose connections'),
    how: optional(word(['drop', 'reject']), 'drop', 'silently, or with a reset'),
  },
  ...needs,
  act({ pod, how }, run, name) {
    const { node: where, addresses } = run.lab.pod(pod);
    const [from = ''] = addresses;
    return begin(run, where, name, (table) => blockTcp(run.lab, where, from, how, table));
  },
});

const lose = kind({
  help: 'packets that a node forwards are lost: a share of them, or all',
  fields: {
    node,
    share: optional(number(0, 1), 1, '0.1: a tenth'),
    from: optional(named('server', 'IP|SERVICE|POD'), null, 'only packets from there'),
    to: nobody,
    protocol: optional(word(['udp', 'tcp']), null, 'only these'),
    port: optional(whole(1, 65_535), null, 'only packets to this port'),
  },
  ...needs,
  act({ node: where, share, from, to, protocol, port }, run, name) {
    const { lab } = run;
    const address = (one: string | null): string | null =>
      one === null ? null : serverAddress(lab, one);
    const match = { from: address(from), to: address(to), protocol, port };
    return begin(run, where, name, (table) => losePackets(lab, where, match, share, table));
  },
});

const undo = bareKind({
  help: 'takes faults away, by the names of their steps',
  bare: oneOrMore(text),
  act(names, run) {
    for (const name of names) {
      const found = run.undo.get(name);
      if (found === undefined) throw new RangeError(`there is no fault "${name}" to be undone`);
      // Reads the counter a last time before its table is removed.
      const { lost: taken } = run.results.get(name) ?? {};
      if (typeof taken === 'function') taken();
      run.undo.delete(name);
      for (const end of found.values()) end();
      found.clear();
    }
  },
});

const connections = kind({
  help: 'looks at the table of connections of a node',
  fields: { node: required(named('node', 'NODE'), 'the node') },
  programs: ['conntrack'],
  results: {
    count: 'connections over UDP and TCP',
    insertFailed: 'packets that the kernel has lost since two wanted to begin one connection',
  },
  act: ({ node: where }, { lab }) => ({
    count: countConnections(lab, where),
    insertFailed: insertFailed(lab, where),
  }),
});

const forget = kind({
  help: 'takes entries of UDP out of the table of connections, as kube-proxy does when an endpoint goes',
  fields: {
    node: required(named('node', 'NODE'), 'the node'),
    to: nobody,
    endpoint: optional(named('server', 'IP|POD'), null, 'only those that lead there'),
  },
  programs: ['conntrack'],
  results: { count: 'entries that went' },
  act({ node: where, to, endpoint }, { lab }) {
    const address = (one: string | null): string | null =>
      one === null ? null : serverAddress(lab, one);
    return { count: forgetConnections(lab, where, address(to), address(endpoint)) };
  },
});

const set = kind({
  help: 'a setting of a machine’s kernel, below /proc/sys/net',
  fields: {
    on: required(named('machine', 'POD|NODE'), 'the machine'),
    key: required(text, 'as sysctl has it: net.ipv6.conf.all.disable_ipv6'),
    value: required(scalar, 'the value'),
  },
  act({ on, key, value }, { lab }) {
    const path = key.replaceAll('.', '/');
    if (!/^net\/[\w/-]+$/.test(path))
      throw new RangeError(`"${key}" is not a setting of the network`);
    lab.network.set(machineName(lab, on), path, value);
  },
  model({ on, key, value }, { ipv4Only }) {
    if (key === 'net.ipv6.conf.all.disable_ipv6' && value === '1') ipv4Only.add(on);
  },
});

const link = kind({
  help: 'a machine is cut off, or joined again',
  fields: {
    of: required(named('machine', 'POD|NODE'), 'the machine'),
    state: required(word(['up', 'down']), 'how it is from now on'),
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
