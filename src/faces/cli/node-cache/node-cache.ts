/** `ndots node-cache`: runs a node's DNS cache and sets up the node's network for it. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { isIP, printHostPort } from '../../../server/base/ip.ts';
import { every, sleep, systemClock, type Timer } from '../../../server/base/clock.ts';
import { Problem, Problems } from '../../../server/base/problem.ts';
import { secureRandom } from '../../../server/base/random.ts';
import type { ParseOutput } from '../../../server/corefile/parse.ts';
import { chooseRules } from '../../../server/nodelocal/choose-rules.ts';
import {
  clusterZone,
  tuneClusterBlocks,
  type ClusterDns,
} from '../../../server/nodelocal/cluster-blocks.ts';
import { firstAnswer } from '../../../server/nodelocal/first-answer.ts';
import { ClusterEndpoints } from '../../../server/nodelocal/cluster-endpoints.ts';
import { deriveTemplate } from '../../../server/nodelocal/cluster-corefile.ts';
import { CorefileWriter } from '../../../server/nodelocal/corefile-writer.ts';
import { heartbeatBlocks } from '../../../server/nodelocal/heartbeat-block.ts';
import { findPredecessor, Handover, meetingPoint } from '../../../server/nodelocal/handover.ts';
import { Heartbeat } from '../../../server/nodelocal/heartbeat.ts';
import { LocalInterface } from '../../../server/nodelocal/local-interface.ts';
import { NodeNetwork } from '../../../server/nodelocal/node-network.ts';
import { findProgram, wholePath } from '../../../server/runtime/programs.ts';
import { SetupMetrics } from '../../../server/nodelocal/setup-metrics.ts';
import { serviceVariable } from '../../../server/nodelocal/template.ts';
import { packCaches, takeCaches } from '../../../server/plugins/cache/handover.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { parseNodeCacheOptions, type NodeCacheOptions } from './node-cache-options.ts';
import { parseCorefileText } from '../parse-corefile.ts';
import {
  corefileSource,
  pluginList,
  serveCorefile,
  type ServeHooks,
  type ServeHost,
} from '../serve/serve.ts';
import { versionText } from '../version/version.ts';

export const nodeCache: Command = { name: 'node-cache', run };

/** Default takeover directory, if it exists. */
const MEETING = '/run/nodelocaldns';
/** Interval between network checks while there are leases to renew, in milliseconds. */
const LOOK_MS = 1250;
/** Time between removing the rules, after which no new queries arrive, and closing the sockets, in milliseconds. */
const DRAIN_MS = 250;
/** NodeLocal DNSCache's interval. */
const SYNC_MS = 60_000;
/** Interval between checks of the source files. */
const FILES_MS = 10_000;

async function run(words: readonly string[], io: Io): Promise<number> {
  const options = parseNodeCacheOptions(words);
  if (options.version || options.plugins) {
    io.out(options.version ? versionText() : pluginList());
    return EXIT.ok;
  }
  const corefile = options.conf ?? options.corefile ?? '/etc/Corefile';
  return serveCorefile({
    options: { ...options, conf: corefile, example: false },
    source: await corefileSource(corefile, dnsPortOf(options), io),
    io,
    around: (host) => around(options, corefile, io.env, host),
  });
}

const dnsPortOf = ({ dnsPort }: NodeCacheOptions): number => dnsPort ?? 53;

/** Hooks around the server. They create the Corefile and the interface before it starts, and the rules afterwards. */
async function around(
  options: NodeCacheOptions,
  corefile: string,
  env: Io['env'],
  host: ServeHost,
): Promise<ServeHooks> {
  const { log } = host;
  const port = dnsPortOf(options);
  const metrics = new SetupMetrics();
  await metrics.serve(options.metricsAddress ?? { host: '0.0.0.0', port: 9353 }, log);
  const cluster = clusterDns(options, corefile, env);
  const writer = corefileWriter(options, corefile, cluster, env, host, metrics);
  const network = nodeNetwork(options, env, host, metrics);
  const heartbeat = new Heartbeat({
    addresses: options.localIp,
    port,
    clock: systemClock,
    onChange(address, answers) {
      metrics.answers(address, answers);
      if (answers) log.info(`${address} answers`);
      else log.error(`${address} does not answer, so queries to it go to the cluster's service`);
    },
  });
  const timers: Timer[] = [];
  const repeat = (ms: number, run: () => void): void =>
    void timers.push(every(systemClock, ms, run));
  const rest = (): void => {
    endpoints?.stop();
    for (const timer of timers.splice(0)) timer.cancel();
  };
  const endpoints = clusterEndpoints(options, cluster, log);
  endpoints?.start();
  const meeting = meetingPath(options, log);
  const before = meeting === null ? null : await findPredecessor(meeting, log);
  const forget = before === null ? null : takeCaches(before.cache);
  writer.begin();
  try {
    network.setUpInterface();
  } catch (error) {
    await network.tearDown();
    throw error;
  }
  let handover: Handover | null = null;
  let handedOver = false;
  let zone: string | null = null;
  return {
    takesOver: before !== null,
    change(parsed) {
      zone = cluster === null ? null : clusterZone(parsed.corefile, cluster);
      return withHeartbeat(withCluster(notEmpty(parsed, corefile), cluster), port);
    },
    async serving(server) {
      forget?.();
      const [address] = options.localIp;
      if (before === null && zone !== null && address !== undefined)
        await firstAnswer({ address, port, zone, clock: systemClock, log });
      await network.setUpRules();
      heartbeat.start();
      network.look();
      repeat(options.failOpen ? LOOK_MS : (options.syncInterval ?? SYNC_MS), () => network.look());
      repeat(FILES_MS, () => {
        if (writer.update()) host.reload();
      });
      if (before !== null) {
        await before.release();
        metrics.handedOver('in');
        log.info('The other instance has released the addresses');
      }
      if (meeting === null) return;
      const release = async (): Promise<void> => {
        handedOver = true;
        handover?.close();
        metrics.handedOver('out');
        rest();
        heartbeat.stop();
        await network.handOver();
        await server.stop(true);
        systemClock.after(options.linger ?? 0, () => host.end(EXIT.ok));
      };
      handover = new Handover({ path: meeting, cache: packCaches, release, log });
      handover.listen();
    },
    async ending() {
      rest();
      handover?.close();
      if (handedOver) return;
      await network.withdraw();
      // Existing pod connections still deliver queries.
      if (!options.skipTeardown) await sleep(systemClock, DRAIN_MS);
    },
    async ended() {
      rest();
      heartbeat.stop();
      if (!handedOver) await network.tearDown();
      metrics.close();
    },
  };
}

/** The takeover directory, or null if there is none. */
function meetingPath({ takeover }: NodeCacheOptions, log: ServeHost['log']): string | null {
  const directory = takeover ?? (existsSync(MEETING) ? MEETING : 'none');
  if (directory === 'none') return null;
  if (existsSync(directory)) return meetingPoint(directory);
  log.warning(
    `-takeover: there is no directory ${directory}, so no other instance can take over from this one`,
  );
  return null;
}

/** The cluster DNS address, or null if unknown. */
function clusterDns(
  { upstreamService, upstreamEndpoints }: NodeCacheOptions,
  corefile: string,
  env: Io['env'],
): ClusterDns | null {
  const address = env[serviceVariable(upstreamService ?? 'kube-dns')];
  if (address === undefined || isIP(address) === 0) return null;
  return { address, file: upstreamEndpoints === null ? null : `${resolve(corefile)}.upstreams` };
}

function clusterEndpoints(
  { upstreamEndpoints }: NodeCacheOptions,
  cluster: ClusterDns | null,
  log: ServeHost['log'],
): ClusterEndpoints | null {
  if (upstreamEndpoints === null || cluster === null || cluster.file === null) return null;
  const { address, file } = cluster;
  const world = { clock: systemClock, random: secureRandom, log };
  return new ClusterEndpoints({ name: upstreamEndpoints, clusterDns: address, file, ...world });
}

/** Without server blocks, CoreDNS would answer any name on every address, which here includes the node's own. */
function notEmpty(parsed: ParseOutput, corefile: string): ParseOutput {
  if (parsed.problems.length > 0 || parsed.corefile.blocks.length > 0) return parsed;
  const nothing = new Problem({
    code: 'nothing-to-serve',
    text: `The Corefile ${corefile} contains no server block`,
    hint: 'It may have been read while it was being written.',
    remedy:
      "Use the template in docs/node-cache.md (-basecorefile), or derive the Corefile from the cluster's (-from-corefile).",
  });
  return { ...parsed, problems: [nothing] };
}

function withCluster(parsed: ParseOutput, cluster: ClusterDns | null): ParseOutput {
  if (cluster === null || parsed.problems.length > 0) return parsed;
  return { ...parsed, corefile: tuneClusterBlocks(parsed.corefile, cluster) };
}

function corefileWriter(
  options: NodeCacheOptions,
  corefile: string,
  cluster: ClusterDns | null,
  env: Io['env'],
  { log }: ServeHost,
  metrics: SetupMetrics,
): CorefileWriter {
  const port = dnsPortOf(options);
  const service = options.upstreamService ?? 'kube-dns';
  const { localIp, fromCorefile } = options;
  const [first = ''] = localIp;
  const health = printHostPort(first, options.healthPort ?? 8080);
  const derive = (file: string) => (text: string) => {
    const { corefile: cluster, problems } = parseCorefileText({ file, text, dnsPort: port, env });
    if (problems.length > 0) throw problems[0]!;
    return deriveTemplate(cluster, { health, metrics: ':9253', port });
  };
  return new CorefileWriter({
    base: fromCorefile ?? options.baseCorefile ?? '/etc/coredns/Corefile.base',
    derive: fromCorefile === null ? null : derive(fromCorefile),
    corefile,
    kubeDnsDirectory: options.kubeDnsConfig ?? '',
    values: { localAddresses: localIp, port, service, clusterDns: cluster?.address ?? null },
    log,
    onError: () => metrics.failed('configmap'),
  });
}

function nodeNetwork(
  options: NodeCacheOptions,
  env: Io['env'],
  { log }: ServeHost,
  metrics: SetupMetrics,
): NodeNetwork {
  const { localIp, skipTeardown } = options;
  const name = options.interfaceName ?? 'nodelocaldns';
  const path = wholePath(env['PATH'] ?? '');
  const lease = options.failOpen;
  const rules = options.setupIptables
    ? chooseRules({
        addresses: localIp,
        port: dnsPortOf(options),
        lease,
        name,
        path,
        log,
        healthPort: options.healthPort ?? 8080,
        program: options.rules ?? 'auto',
      })
    : [];
  const localInterface = options.setupInterface
    ? new LocalInterface({ name, addresses: localIp, lease: lease && !skipTeardown, log })
    : null;
  const sets = localInterface !== null || rules.length > 0;
  const shell = lease && sets && !skipTeardown ? findProgram('sh', path) : null;
  return new NodeNetwork({
    localInterface,
    rules,
    shell,
    pipe: options.teardownPipe,
    skipTeardown,
    log,
    onError: (kind) => metrics.failed(kind),
    onRepair: (what) => metrics.repaired(what),
  });
}

/** Adds a server block for the heartbeat on the same addresses. */
function withHeartbeat(parsed: ParseOutput, port: number): ParseOutput {
  if (parsed.problems.length > 0) return parsed;
  const text = heartbeatBlocks(parsed.corefile, port);
  const added = parseCorefileText({ file: 'the heartbeat', text, dnsPort: port, env: {} });
  if (added.problems.length > 0) throw new Problems(added.problems);
  const blocks = [...parsed.corefile.blocks, ...added.corefile.blocks];
  return { ...parsed, corefile: { ...parsed.corefile, blocks } };
}
