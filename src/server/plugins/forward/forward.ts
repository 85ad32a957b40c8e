/** The `forward` plugin: its lines, and the upstreams that it sends to the workers. */
import { lineThatIsNoText } from '../../base/binary-text.ts';
import { every, type Timer } from '../../base/clock.ts';
import { Mistakes, problemsIn } from '../../base/problem.ts';
import { retireUpstreams } from '../../transport/upstream/retire-upstreams.ts';
import { readUpstreamTls } from '../../engine/contract/upstream-tls.ts';
import { readNameservers } from '../../engine/contract/nameservers.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import type { Query } from '../../transport/query.ts';
import { printUpstream, readTo, type ForwardUpstreamSpec } from './address.ts';
import { UpstreamSet } from './upstream-set.ts';
import { HostAddresses } from './host-addresses.ts';
import { exchangeTaps, roundTrips, type ExchangeTap } from '../../engine/contract/ports.ts';
import { ownUpstreams } from './own-upstreams.ts';
import { plainLine, syntax, type ForwardLine, type ForwardSaid } from './forward-options.ts';
import {
  findUpstreams,
  realPlaces,
  type FoundUpstreams,
  type PlacesWorld,
} from './find-upstreams.ts';
import { ForwardMetrics } from './forward-counters.ts';
import { ForwardUpstream } from './forward-upstream.ts';

/** Interval in ms between checks of nameserver files and of host names that are due. */
const POLL_MS = 1000;

/**
 * A message from the control part to workers. It contains the upstreams for every forward line and the number of
 * workers that share them.
 */
interface PublishedUpstreams {
  readonly lists: readonly (readonly ForwardUpstreamSpec[])[];
  readonly workers: number;
}

export function makeForward(world: PlacesWorld): Plugin {
  return definePlugin({
    syntax,
    plan(_, plan) {
      plan.anyClass = true;
    },
    control: (lines, context) => control(lines, context, world),
    setup,
  });
}

/** Sends queries to other DNS servers (forward.md). */
export const forward: Plugin = makeForward(realPlaces);

async function control(
  lines: readonly ForwardSaid[],
  context: ControlContext,
  world: PlacesWorld,
): Promise<void> {
  const isOwn = (server: string): boolean => {
    const read = readTo(server);
    return read.kind === 'address' && ownUpstreams([read.upstream], context.servers).length > 0;
  };
  const hosts = lines.map(
    ({ resolveIntervalMs, resolveHoldMs }) =>
      new HostAddresses({
        lookUp: (name, servers) => world.lookUp(name, servers, isOwn),
        clock: context.clock,
        metrics: context.metrics,
        intervalMs: resolveIntervalMs,
        holdMs: resolveHoldMs,
        warn: (text) => context.log.warning(text),
      }),
  );
  const find = (line: ForwardSaid): Promise<FoundUpstreams> =>
    findUpstreams(line.to, line.resolver, line.at, {
      readFile: world.readFile,
      resolve: hosts[lines.indexOf(line)]!.resolve,
      path: (file) => context.path(file),
    });
  const found: FoundUpstreams[] = [];
  const mistakes = new Mistakes();
  for (const line of lines) {
    await mistakes.of(() => readUpstreamTls('forward', line, context));
    const upstreams = await mistakes.of(() => find(line));
    if (upstreams === null) continue;
    found.push(upstreams);
    warnAbout(upstreams, context);
  }
  mistakes.throw();
  const workers = new Set<number>();
  const state = (): PublishedUpstreams => ({
    lists: found.map(({ upstreams }) => upstreams),
    workers: Math.max(1, workers.size),
  });
  context.onJoin(() => [state()]);
  context.onMessage((_, worker) => {
    if (workers.has(worker)) return;
    workers.add(worker);
    context.publish(state());
  });
  if (found.every(({ files }, at) => files.size === 0 && !hosts[at]!.refreshes)) return;
  let stopped = false;
  const poll = async (): Promise<void> => {
    for (const [index, line] of lines.entries()) {
      const before = found[index]!;
      const isSame = ([path, text]: [string, string]): boolean => textOf(path, world) === text;
      const fileChanged = ![...before.files].every(isSame);
      if (!fileChanged && !hosts[index]!.due) continue;
      try {
        found[index] = await find(line);
      } catch (error) {
        // The file is incomplete or lists no servers, so the known upstreams stay in use.
        const [problem] = problemsIn(error) ?? [];
        if (problem !== undefined)
          warnOnce(
            context,
            `${problem.message.replace('plugin/forward: ', '')}; keeping the previous upstreams`,
          );
        continue;
      }
      const [was, is] = [before, found[index]].map(({ upstreams }) =>
        upstreams.map(printUpstream).join(', '),
      );
      if (stopped) return;
      if (fileChanged || was !== is) warnAbout(found[index], context);
      if (was === is) continue;
      context.log.info(
        `upstreams of ${[...found[index].files.keys(), ...hosts[index]!.names].join(', ')} changed: ${was} → ${is}`,
      );
      context.publish(state());
    }
  };
  let timer: Timer | null = null;
  // A lookup can take longer than the poll interval.
  let polling = false;
  context.onStart(() => {
    timer = every(context.clock, POLL_MS, () => {
      if (polling) return;
      polling = true;
      void poll().finally(() => (polling = false));
    });
  });
  context.onStop(() => {
    stopped = true;
    timer?.cancel();
  });
}

/** Warns about partly binary files, and about upstreams that are this server itself. */
function warnAbout({ upstreams, files }: FoundUpstreams, context: ControlContext): void {
  for (const own of ownUpstreams(upstreams, context.servers)) {
    const file = [...files].find(([, text]) => readNameservers(text).includes(own.host))?.[0];
    const said = file === undefined ? '' : `${file} lists `;
    context.log.warning(
      `${said}${printUpstream(own)}${file === undefined ? ' is' : ', which is'} one of this server's own addresses, so every query loops back unless another program uses the address; specify a different resolver`,
    );
  }
  for (const [path, text] of files) {
    const line = lineThatIsNoText(text);
    if (line > 0)
      context.log.warning(
        `${path}:${line}: part of this line is not text, and only \`nameserver IP\` lines are used; check that the file is complete`,
      );
  }
}

const warned = new WeakMap<ControlContext, string>();

function warnOnce(context: ControlContext, text: string): void {
  if (warned.get(context) === text) return;
  warned.set(context, text);
  context.log.warning(text);
}

function textOf(path: string, world: PlacesWorld): string | null {
  try {
    return world.readFile(path);
  } catch {
    return null;
  }
}

function setup(said: readonly ForwardSaid[], context: WorkerContext, next: Next): Next {
  const lines = said.map(plainLine);
  const { clock, random, writer } = context;
  const metrics = new ForwardMetrics(context.metrics);
  const sets: UpstreamSet[] = [];
  const taps: ExchangeTap[] = [];
  context.onStart(() => taps.push(...context.find(exchangeTaps)));
  let seekers: readonly ((query: Query) => boolean)[] = [];
  context.onStart(() => (seekers = context.find(roundTrips)));
  const isRoundTrip = (query: Query): boolean => {
    for (const seeks of seekers) if (seeks(query)) return true;
    return false;
  };
  let after: Next = next;
  for (const line of lines.toReversed()) {
    const set = new UpstreamSet({
      ...line,
      clock,
      random,
      writer,
      metrics,
      taps,
      isRoundTrip,
      nextOn: line.next,
      next: after,
      chained: after !== next,
    });
    sets.unshift(set);
    after = set.link;
  }
  const makers = lines.map((line) => upstreamMaker(line, context, metrics));
  context.onMessage((message) => {
    const { lists, workers } = message as PublishedUpstreams;
    sets.forEach((set, index) => {
      replaceUpstreams(set, lists[index] ?? [], makers[index]!, context);
      const { maxPps } = lines[index]!;
      if (maxPps !== null) for (const { budget } of set.upstreams) budget!.limit = maxPps / workers;
    });
  });
  context.onStart(() => context.post('here'));
  context.onStop(() => {
    const all = sets.flatMap(({ upstreams }) => upstreams);
    retireUpstreams(clock, all);
  });
  return after;
}

function upstreamMaker(
  line: ForwardLine,
  context: WorkerContext,
  metrics: ForwardMetrics,
): (spec: ForwardUpstreamSpec) => ForwardUpstream {
  const tls = readUpstreamTls('forward', line, context);
  const { network, clock } = context;
  return (spec) => new ForwardUpstream({ ...line, spec, network, clock, metrics, tls });
}

/** Installs a new list. Upstreams that were on the old one keep their connections and health. */
function replaceUpstreams(
  set: UpstreamSet,
  list: readonly ForwardUpstreamSpec[],
  make: (spec: ForwardUpstreamSpec) => ForwardUpstream,
  context: WorkerContext,
): void {
  const key = ({ scheme, host, port, serverName }: ForwardUpstreamSpec): string =>
    `${scheme} ${host} ${port} ${serverName}`;
  const before = new Map(set.upstreams.map((upstream) => [key(upstream.spec), upstream]));
  set.upstreams = list.map((spec) => before.get(key(spec)) ?? make(spec));
  const kept = new Set(set.upstreams);
  const gone = [...before.values()].filter((upstream) => !kept.has(upstream));
  if (gone.length > 0) retireUpstreams(context.clock, gone);
}
