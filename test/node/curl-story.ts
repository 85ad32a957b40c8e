/**
 * Runs `curl backend` during `kubectl ndots node NODE -- capture --process -o flow`, and compares each part of the
 * output with the cluster: the client's process, the query, the server and its upstream, the connection, its
 * translation, and the pod that accepted it.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { containersOf } from './capture-daemon-set.ts';
import { DNS_PODS } from './cluster-dns.ts';
import type { NodeCluster } from './node-cluster.ts';
import { TOOLS_IMAGE } from './node-images.ts';
import { DNS_ADDRESS, UPSTREAM_ADDRESS } from './node-settings.ts';
import { say, until } from './progress.ts';

/** Without `--bpf`, a capture on a busy machine misses the process of some lookups. */
const STORY_MS = 240_000;
/** The address of all names in example.com (`upstreamCorefile`). Nothing listens there. */
const EXTERNAL_ADDRESS = '192.0.2.80';
/** The digits of a container's ID in the output. */
const ID_SHOWN = 12;

export async function startBackend(node: NodeCluster): Promise<void> {
  await node.kubectl('apply', '-f', join(import.meta.dirname, 'backend.yaml'));
  await node.rolledOut('shop', 'deployment/backend');
}

/** The lookups of one curl: the rows of `-o flow`, and what curl printed. */
interface CurlStory {
  readonly rows: string;
  readonly printed: string;
}

/**
 * Runs curl in the client pod again and again during a capture, until its rows match.
 * @param url the URL of curl number N
 * @param rows what the rows must contain, in order
 */
async function curlUntil(
  node: NodeCluster,
  words: readonly string[],
  { url, rows }: { readonly url: (at: number) => string; readonly rows: RegExp },
): Promise<CurlStory> {
  const capture = node.startNdots([
    ...['node', 'node1', '--image', TOOLS_IMAGE, '--'],
    ...['capture', '-i', 'any', '--process', ...words, '-o', 'flow'],
  ]);
  const printed: string[] = [];
  let found: CurlStory | null = null;
  try {
    await until('the capture to start', () =>
      capture.output().includes('Ctrl-C ends\n') ? null : capture.output(),
    );
    await until(
      `the rows of ${url(0)}`,
      async () => {
        const { out } = await node.tryKubectl(
          ...['-n', 'shop', 'exec', 'deploy/client', '--'],
          ...['curl', '-s', '-m', '2', url(printed.length)],
        );
        printed.push(out);
        // The last line may be incomplete.
        const [, whole = ''] = /^([^]*)\n/.exec(capture.output()) ?? [];
        const lookups = whole.split(/\n(?=\d\d:\d\d:\d\d\.)/);
        for (const [at, text] of printed.entries()) {
          const own = lookups.find((each) => each.includes(` ${url(at)}, started by `));
          if (own !== undefined && rows.test(own)) found = { rows: own, printed: text };
        }
        return found === null ? capture.output().slice(-2000) : null;
      },
      STORY_MS,
    );
  } finally {
    await capture.stop();
  }
  const story = found as CurlStory | null;
  assert.ok(story !== null);
  say(`curl ${words.join(' ')}: shown after ${printed.length} times\n${story.rows}`);
  return story;
}

/** Maps the address of each pod to its name and the beginning of its container's ID. */
async function podsByAddress(
  node: NodeCluster,
  namespace: string,
  selector: string,
): Promise<ReadonlyMap<string, { readonly name: string; readonly container: string }>> {
  const pods = await node.pods(namespace, selector);
  const ids = await containersOf(node, namespace, selector);
  return new Map(
    pods.map(({ metadata, status }, at) => [
      status.podIP!,
      { name: metadata.name, container: ids[at]!.slice(0, ID_SHOWN) },
    ]),
  );
}

/** `asked  by …` in the rows of a curl. */
const ASKED =
  /asked +by (?<client>\w{12})\/curl\[\d+\] +curl -s -m 2 \S+, started by .*, pod (?<clientPod>\S+)/;
/** `answered  by …`, the command of the server, its pod and the addresses. */
const ANSWERED = new RegExp(
  `answered +by (?<server>\\w{12})/(?<command>[^[\\n]+)\\[\\d+\\](?: in (?<serverPod>\\S+))? at ${DNS_ADDRESS}:53 ⇒ (?<dnsPod>[\\d.]+):53`,
);

/** A capture's further options, and whether it can read the names of pods. */
export interface StoryCapture {
  readonly words: readonly string[];
  readonly hasNames: boolean;
}

/** Asserts that the client and the DNS pod in the rows are those of the cluster. */
async function assertAskedAndAnswered(
  node: NodeCluster,
  rows: string,
  hasNames: boolean,
): Promise<void> {
  const { client, clientPod } = ASKED.exec(rows)!.groups!;
  const { server, serverPod, dnsPod } = ANSWERED.exec(rows)!.groups!;
  const [id] = await containersOf(node, 'shop', 'app=client');
  assert.equal(client, id!.slice(0, ID_SHOWN));
  const { name, container } = (await podsByAddress(node, 'kube-system', DNS_PODS)).get(dnsPod!)!;
  assert.equal(container, server, rows);
  const { metadata } = (await node.pods('shop', 'app=client'))[0]!;
  assert.deepEqual(
    [clientPod, serverPod],
    hasNames ? [`shop/${metadata.name}`, `kube-system/${name}`] : [metadata.uid, undefined],
    rows,
  );
}

export async function assertStoryOfBackend(
  node: NodeCluster,
  { words, hasNames }: StoryCapture,
): Promise<void> {
  const service = await node.kubectl(
    ...['-n', 'shop', 'get', 'service', 'backend', '-o', 'jsonpath={.spec.clusterIP}'],
  );
  const name = 'backend\\.shop\\.svc\\.cluster\\.local\\.';
  const { rows, printed } = await curlUntil(node, words, {
    url: (at) => `http://backend/${at}`,
    rows: new RegExp(
      [
        `✓ (?:\\S*?)${name} .*`,
        ASKED.source,
        `${ANSWERED.source} +no upstream query seen`,
        `${name} +A ${service} .*AAAA NODATA`,
        `connects to ${service}:80 ⇒ (?<pod>[\\d.]+):8080 +accepted by (?<backend>\\w{12})/node\\S*\\[\\d+\\]`,
      ].join('[^]*?'),
    ),
  });
  await assertAskedAndAnswered(node, rows, hasNames);
  const { pod, backend, named } =
    /⇒ (?<pod>[\d.]+):8080 +accepted by (?<backend>\w{12})\/\S+\](?: in (?<named>\S+))?/.exec(
      rows,
    )!.groups!;
  const backends = await podsByAddress(node, 'shop', 'app=backend');
  assert.deepEqual(backends.get(pod!), { name: printed, container: backend }, rows);
  assert.equal(named, hasNames ? `shop/${printed}` : undefined, rows);
}

/** The same for a name outside the cluster, which the DNS server gets from its upstream. */
export async function assertStoryOfExternalName(
  node: NodeCluster,
  { words, hasNames }: StoryCapture,
): Promise<void> {
  // A new name each time, so that it is not cached.
  const seed = Date.now().toString(36);
  const { rows } = await curlUntil(node, words, {
    url: (at) => `http://curl-${seed}-${at}.example.com/`,
    rows: new RegExp(
      [
        ASKED.source,
        ANSWERED.source,
        // The search path asks the upstream as well.
        `curl-${seed}-\\d+\\.example\\.com\\.corp\\.example\\. +A NXDOMAIN`,
        `\\k<command>\\[\\d+\\] asks ${UPSTREAM_ADDRESS}:53 +A NXDOMAIN`,
        `curl-${seed}-\\d+\\.example\\.com\\. +A ${EXTERNAL_ADDRESS} .*AAAA NODATA`,
        `\\k<command>\\[\\d+\\] asks ${UPSTREAM_ADDRESS}:53 +A ${EXTERNAL_ADDRESS} .*`,
        `connects to ${EXTERNAL_ADDRESS}:80`,
      ].join('[^]*?'),
    ),
  });
  await assertAskedAndAnswered(node, rows, hasNames);
}
