/** `loop`: detects forwarding loops when the server starts. */
import { printHostPort } from '../../base/ip.ts';
import type { Random } from '../../base/random.ts';
import { directive } from '../../corefile/syntax.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { roundTrips } from '../../engine/contract/ports.ts';
import { TYPE } from '../../wire/iana.ts';
import { parseName, suffixAt, type WireName } from '../../wire/name.ts';
import { makeQuery, type Query } from '../../transport/query.ts';
import { reach, udpProbe, type LoopProbe } from './probe.ts';
import { LoopWatch, type LoopSighting } from './loop-watch.ts';

/** Sent from the control part to workers: the name to watch for, or null to stop. */
interface PublishedName {
  readonly name: string | null;
}

const PROBE_TIMEOUT_MS = 2000;

const syntax = directive({
  name: 'loop',
  summary: 'detects forwarding loops at startup and stops the server',
  repeat: 'once',
});

export function makeLoop(probe: LoopProbe): Plugin {
  return definePlugin({
    syntax,
    operational: true,
    control: (_, context) => control(context, probe),
    setup: (_, context, next) => setup(context, next),
  });
}

/** Ends the process if the server forwards to itself (loop.md). */
export const loop: Plugin = makeLoop(udpProbe);

function control(context: ControlContext, probe: LoopProbe): void {
  const zone = context.zones[0] ?? '.';
  let name: string | null =
    `${label(context.random)}.${label(context.random)}.${zone === '.' ? '' : zone}`;
  const address = context.servers.map(reach).find((found) => found !== null) ?? null;
  // Only plain DNS can loop, so without a plain DNS address there is nothing to probe.
  if (address === null) return;
  const query = makeQuery(parseName(name), TYPE.HINFO, 1, context.random.integer(0x10000));
  const asked = `HINFO ${name}`;
  const watch = new LoopWatch({
    clock: context.clock,
    probe: () =>
      probe(query.bytes.subarray(query.start, query.end), address, PROBE_TIMEOUT_MS, context.clock),
    found: (sighting) => context.fatal(explain(sighting, zone, asked)),
    over: () => {
      name = null;
      context.publish({ name } satisfies PublishedName);
    },
  });
  context.onJoin(() => (name === null ? [] : [{ name } satisfies PublishedName]));
  context.onMessage((message) => watch.see(message as LoopSighting));
  context.onStart(() => {
    // Startup must not wait for the probe, because the probe needs a running server.
    void watch.run();
  });
  context.onStop(() => watch.stop());
}

/** Returns a decimal number with up to 62 bits. */
function label(random: Random): string {
  const high = BigInt(random.integer(2 ** 30));
  return ((high << 32n) | BigInt(random.integer(2 ** 32))).toString();
}

function explain({ from, to }: LoopSighting, zone: string, asked: string): string {
  return [
    `plugin/loop: Loop (${from} -> ${to}) detected for zone "${zone}", see https://coredns.io/plugins/loop#troubleshooting. Query: "${asked}"`,
    '  The server forwards queries to itself. Usually, forward reads /etc/resolv.conf, which lists a local stub resolver',
    "  (systemd-resolved's 127.0.0.53, or 127.0.0.1) or this server's own address.",
    '  Check: grep nameserver /etc/resolv.conf',
    '  Fix:   in a cluster, make the kubelet pass on the real list (resolvConf: /run/systemd/resolve/resolv.conf in its',
    '         configuration) and restart the pod; elsewhere, list the real resolvers: forward . 192.0.2.53',
    '  Do not just remove loop, because queries would then loop until memory runs out.',
  ].join('\n');
}

function setup(context: WorkerContext, next: Next): Next {
  let wanted: WireName | null = null;
  context.onMessage((message) => {
    const { name } = message as PublishedName;
    wanted = name === null ? null : parseName(name);
  });
  const isProbe = (query: Query): boolean =>
    query.type === TYPE.HINFO &&
    wanted !== null &&
    suffixAt(query.folded, wanted, query.nameLength) === 0;
  context.offer(roundTrips, isProbe);
  return (query) => {
    if (isProbe(query)) context.post(sighting(query));
    return next(query);
  };
}

function sighting({ client, peerPort, local, localPort }: Query): LoopSighting {
  return { from: printHostPort(client, peerPort), to: printHostPort(local, localPort) };
}
