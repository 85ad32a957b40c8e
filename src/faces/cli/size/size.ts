/** `ndots size`: computes the number of replicas from the cluster's size or from metrics, or scales continuously. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { printSpan } from '../../../server/base/elapsed.ts';
import { sleep, systemClock } from '../../../server/base/clock.ts';
import { endHttp, listenHttp } from '../../../server/base/http-listening.ts';
import { boundConnections } from '../../../server/base/idle-connections.ts';
import { asObject, textMap } from '../../../server/base/json-object.ts';
import { makeLog } from '../../../server/base/log.ts';
import { Problem } from '../../../server/base/problem.ts';
import { secureRandom } from '../../../server/base/random.ts';
import { FILE_MAX } from '../../../server/base/read-file.ts';
import { parseYaml } from '../../../server/kube/manifests/yaml-document.ts';
import { Autoscaler } from '../../../addons/autoscaler/autoscaler.ts';
import { measuredSize, sampleOf, type ReplicaSample } from '../../../addons/autoscaler/measured.ts';
import { readSizing } from '../../../addons/autoscaler/proportional.ts';
import { scrapeUrl } from '../../../server/metrics/scrape-url.ts';
import { accessOf } from '../cluster-options.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { listening } from '../serve/listening.ts';
import { givenText } from '../named-file.ts';
import { count } from '../../../server/base/counted.ts';
import { parseSizeOptions, type FollowOptions, type SizeOptions } from './size-options.ts';
import { coreVersion } from '../version/version.ts';
import { untilSignal } from '../until-signal.ts';

export const size: Command = {
  name: 'size',
  async run(words, io) {
    const options = parseSizeOptions(words, io.env);
    switch (options.mode) {
      case 'cluster':
        return byCluster(options, io);
      case 'measured':
        return byMetrics(options, io);
      case 'follow':
        return follow(options, io);
    }
  },
};

/** The parameters used by most kubeadm clusters and by the CoreDNS chart. */
const usualParams = {
  linear: '{"coresPerReplica":256,"nodesPerReplica":16,"preventSinglePointFailure":true}',
};

async function byCluster(
  options: Extract<SizeOptions, { mode: 'cluster' }>,
  io: Io,
): Promise<number> {
  const { nodes, cores, params, output } = options;
  const data = params === null ? usualParams : await paramsOf(params, io);
  const sized = readSizing(
    data,
    params === null ? 'the usual proportion' : fileLabel(params),
  ).replicas({
    nodes,
    cores,
    schedulableNodes: nodes,
    schedulableCores: cores,
  });
  if (output === 'json') io.out(`${JSON.stringify(sized)}\n`);
  else io.out(`${count(sized.replicas, 'replica', 'replicas')}: ${sized.because}\n`);
  return EXIT.ok;
}

const fileLabel = (path: string): string => (path === '-' ? 'standard input' : path);

/** Reads ConfigMap data, either on its own or inside the object. */
async function paramsOf(path: string, io: Io): Promise<Record<string, string>> {
  const content = await givenText(path, 'ConfigMap of the autoscaler', io, FILE_MAX.small);
  const { documents, problems } = parseYaml(content, fileLabel(path));
  const [problem] = problems;
  if (problem !== undefined) throw problem;
  const object = asObject(documents[0]?.value);
  if (object['kind'] === 'ConfigMap' || 'data' in object) return textMap(object, 'data');
  return Object.fromEntries(
    Object.entries(object).map(([mode, params]) => [
      mode,
      typeof params === 'string' ? params : JSON.stringify(params),
    ]),
  );
}

async function byMetrics(
  options: Extract<SizeOptions, { mode: 'measured' }>,
  io: Io,
): Promise<number> {
  const { metrics, forMs, output } = options;
  if (output === 'text')
    io.err(
      `ndots size: measuring ${count(metrics.length, 'replica', 'replicas')} for ${printSpan(forMs)} …\n`,
    );
  const before = await Promise.all(metrics.map((url) => scrape(url, io.signal)));
  await sleep(systemClock, forMs, io.signal);
  if (io.signal.aborted) return EXIT.interrupted;
  const after = await Promise.all(metrics.map((url) => scrape(url, io.signal)));
  const found = measuredSize(before, after, options);
  if (output === 'json') {
    io.out(`${JSON.stringify(found)}\n`);
    return EXIT.ok;
  }
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  io.out(
    [
      `${count(found.replicas, 'replica', 'replicas')}: ${found.because}`,
      '',
      `  queries       ${found.queriesPerSecond.toFixed(0)}/s now, planned for ${(found.queriesPerSecond * options.peak).toFixed(0)}/s`,
      `  CPU           ${(found.cpuPerQuery * 1e6).toFixed(1)} µs per query; a replica uses ${percent(found.utilisation)} of ${options.cpu}`,
      `  cache         ${percent(found.cacheHits)} of queries`,
      '',
    ].join('\n'),
  );
  return EXIT.ok;
}

/** Time limit of a scrape, in milliseconds. */
const SCRAPE_MS = 10_000;

async function scrape(url: URL, signal: AbortSignal): Promise<ReplicaSample> {
  try {
    return sampleOf(await scrapeUrl({ url, waitMs: SCRAPE_MS, signal }), performance.now());
  } catch (error) {
    throw new Problem({
      code: 'metrics-unreachable',
      text: `no metrics from ${url.href}: ${(error as Error).message}`,
      remedy:
        'Give the address of a pod with the prometheus plugin, or forward the port: kubectl port-forward POD 9153',
      cause: error,
    });
  }
}

async function follow(options: FollowOptions, io: Io): Promise<number> {
  const ended = untilSignal('log');
  const access = accessOf(options, io);
  const log = makeLog(
    (line) => io.out(`${line}\n`),
    () => false,
  );
  const { host, port } = options.listen;
  const health = createServer({ requestTimeout: 5000, headersTimeout: 5000 }, answerHealth);
  boundConnections(health, CONNECTIONS_MAX);
  await listening({ host, port, option: '--listen' }, () => listenHttp(health, host, port));
  const targets = options.targets.map(({ kind, name }) => `${kind}/${name}`).join(', ');
  log.info(`following the nodes of ${access.name} for ${targets} in ${options.namespace}`);
  await new Autoscaler({
    ...options,
    connection: access.connection,
    version: coreVersion,
    clock: systemClock,
    random: secureRandom,
    log,
  }).run(ended);
  await endHttp(health, 0);
  return EXIT.ok;
}

/** Limit on connections. The kubelet opens one at a time. */
const CONNECTIONS_MAX = 16;

/**
 * `/healthz`, as in cluster-proportional-autoscaler. Success means that this process is alive, whether or not the API
 * server is.
 */
function answerHealth(request: IncomingMessage, response: ServerResponse): void {
  const found = request.url?.split('?')[0] === '/healthz';
  response.writeHead(found ? 200 : 404, { 'content-type': 'text/plain' });
  response.end(found ? 'OK' : '/healthz');
}
