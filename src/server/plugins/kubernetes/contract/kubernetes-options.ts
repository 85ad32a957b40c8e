/** The syntax of the `kubernetes` directive. */
import { limit } from '../../../base/limits.ts';
import type { Net } from '../../../base/ip.ts';
import type { Place, Problem } from '../../../base/problem.ts';
import {
  required,
  optional,
  rest,
  zones,
  type Position,
  type BoundPositions,
} from '../../../corefile/positions.ts';
import {
  custom,
  each,
  fallthrough,
  fields,
  flag,
  lax,
  list,
  setting,
  zoneList,
  type PropertySchema,
} from '../../../corefile/properties.ts';
import { meant, pluginProblem, pluginRemark } from '../../../corefile/problems.ts';
import { directive, type Options, type Syntax } from '../../../corefile/syntax.ts';
import {
  byteSize,
  choice,
  decimal,
  duration,
  integer,
  net,
  value,
  word,
  worded,
  wrong,
} from '../../../corefile/word-values.ts';
import { parseSelector } from '../../../kube/manifests/selector.ts';

/** With a longer TTL, changes would stay invisible for more than an hour. CoreDNS has the same limits. */
const ttlLimit = limit({ default: 5, min: 0, max: 3600 });

/** Enough for twenty thousand services, however large the files are. */
const manifestMemoryLimit = limit({
  default: 64 * 1024 * 1024,
  min: 1024 * 1024,
  max: 16 * 1024 * 1024 * 1024,
});

const apiserverMemoryLimit = { min: 1024 * 1024, max: 16 * 1024 * 1024 * 1024 };

/** The `pods` option, which determines which addresses have `pod` names. */
export type PodMode = 'disabled' | 'insecure' | 'verified';

const podModes: readonly PodMode[] = ['disabled', 'verified', 'insecure'];

const podMode = value<PodMode>('disabled|insecure|verified', ({ text }) => {
  const found = podModes.find((mode) => mode === text);
  const known = podModes.join(', ');
  return (
    found ??
    wrong(`wrong value for pods: ${text},  must be one of: ${known}`, meant(text, podModes))
  );
});

const isNumber = (text: string): boolean => /^[+-]?\d+(\.\d+)?$/.test(text);

const atLeastZero = (name: string, show: string, whole: boolean) =>
  worded(whole ? integer(show, { min: 0 }) : decimal(show, { min: 0 }), (text, reason) =>
    isNumber(text) && Number(text) < 0
      ? `${name} must be >= 0`
      : `invalid ${name} ${JSON.stringify(text)}: ${reason}`,
  );

const selector = (word: string, what: string, help: string) =>
  custom<string>(
    word,
    'EXPRESSION…',
    (words, refuse) => {
      if (words.length === 0)
        return refuse(`Wrong argument count or unexpected line ending after '${word}'`);
      const text = words.map((part) => part.text).join(' ');
      if (parseSelector(text) === null) {
        return refuse(`unable to parse ${what} selector value: '${text}'`, words[0]!.place, {
          hint: 'Selectors are written like app=web,tier!=cache or env in (staging, qa).',
        });
      }
      return text;
    },
    { default: '', help },
  );

export const syntax: Syntax<
  {
    zones: Position<readonly string[]>;
  },
  {
    manifests: PropertySchema<string | null>;
    manifestMemoryBytes: PropertySchema<number>;
    endpoints: PropertySchema<readonly string[]>;
    tls: PropertySchema<BoundPositions<{
      cert: Position<string>;
      key: Position<string>;
      ca: Position<string>;
    }> | null>;
    kubeconfig: PropertySchema<BoundPositions<{
      file: Position<string>;
      context: Position<string | null>;
    }> | null>;
    snapshot: PropertySchema<string | null>;
    apiserverMemoryBytes: PropertySchema<number | null>;
    apiserverQps: PropertySchema<number>;
    apiserverBurst: PropertySchema<number>;
    apiserverMaxInflight: PropertySchema<number>;
    namespaces: PropertySchema<readonly string[]>;
    namespaceLabels: PropertySchema<string>;
    labels: PropertySchema<string>;
    pods: PropertySchema<PodMode>;
    endpointPodNames: PropertySchema<boolean>;
    ttl: PropertySchema<number>;
    noEndpoints: PropertySchema<boolean>;
    fallthrough: PropertySchema<readonly string[] | null>;
    ignoreEmpty: PropertySchema<boolean>;
    multicluster: PropertySchema<readonly string[] | null>;
    zonal: PropertySchema<boolean>;
    topology: PropertySchema<'prefixes' | 'nodes' | 'pods' | null>;
    topologyZones: PropertySchema<
      readonly BoundPositions<{ zone: Position<string>; prefixes: Position<readonly Net[]> }>[]
    >;
    startupTimeoutMs: PropertySchema<number>;
  },
  'once'
> = directive({
  name: 'kubernetes',
  summary:
    'answers queries for cluster names from Kubernetes objects, in an API server or a directory of manifests',
  repeat: 'once',
  args: {
    zones: zones({
      help: 'zones to serve; PTR answers point into the first one that is not a reverse zone',
    }),
  },
  properties: {
    manifests: setting('manifests', word('DIR'), {
      help: 'read the objects from YAML and JSON files in a directory, which is watched, instead of from an API server',
    }),
    manifestMemoryBytes: setting('manifest_memory', byteSize('SIZE', manifestMemoryLimit), {
      default: manifestMemoryLimit.default,
      help: 'memory limit for reading one object in the directory, and for all of them together; objects that exceed it are ignored, and a file that grows beyond it keeps its old content',
    }),
    endpoints: list('endpoint', word('URL'), {
      lastLineCounts: true,
      help: 'an API server outside the cluster; the first one is used',
    }),
    tls: fields(
      'tls',
      { cert: required(word('CERT')), key: required(word('KEY')), ca: required(word('CA')) },
      { help: 'client certificate, key and CA for `endpoint`' },
    ),
    kubeconfig: fields(
      'kubeconfig',
      { file: required(word('FILE')), context: optional(word('CONTEXT')) },
      { help: 'connect with a context from this file (default: the current one)' },
    ),
    snapshot: setting('snapshot', word('FILE'), {
      help: 'store the last known state in a file, and answer from it after a restart while the API server is unavailable',
    }),
    apiserverMemoryBytes: setting('apiserver_memory', byteSize('SIZE', apiserverMemoryLimit), {
      help: "memory for the API server's objects on the control thread; objects that do not fit are ignored. Default: one eighth of the container's memory above 95 MiB (with a limit of 170 MiB, this is 9 MiB or some 110 000 objects), or 64 MiB without a memory limit",
    }),
    apiserverQps: setting('apiserver_qps', atLeastZero('apiserver_qps', 'QPS', false), {
      default: 0,
      help: 'maximum number of requests per second to the API server; 0: no limit',
    }),
    apiserverBurst: setting('apiserver_burst', atLeastZero('apiserver_burst', 'BURST', true), {
      default: 0,
      help: 'number of requests that may be sent at once after a pause',
    }),
    apiserverMaxInflight: setting(
      'apiserver_max_inflight',
      atLeastZero('apiserver_max_inflight', 'MAX', true),
      {
        default: 0,
        help: 'maximum number of simultaneous lists; 0: no limit',
      },
    ),
    namespaces: list('namespaces', word('NAMESPACE'), { help: 'serve only these namespaces' }),
    namespaceLabels: selector(
      'namespace_labels',
      'namespace_label',
      'serve only namespaces with these labels',
    ),
    labels: selector(
      'labels',
      'label',
      'serve only services, endpoint slices and pods with these labels',
    ),
    pods: setting('pods', podMode, {
      default: 'disabled',
      help: 'which names such as `10-0-0-1.NS.pod.ZONE` exist: none, those for any address, or those for pod addresses in that namespace',
    }),
    endpointPodNames: flag('endpoint_pod_names', {
      help: 'name endpoints without a host name after their pod instead of their address',
    }),
    ttl: lax(
      setting(
        'ttl',
        worded(integer('TTL', ttlLimit), (text, reason) =>
          isNumber(text) ? `ttl must be in range [0, 3600]: ${text}` : reason,
        ),
        { default: ttlLimit.default, help: 'TTL of answers, in seconds' },
      ),
    ),
    noEndpoints: flag('noendpoints', {
      help: 'do not watch endpoints; queries for headless services and endpoint names get NXDOMAIN',
    }),
    fallthrough: fallthrough(),
    ignoreEmpty: custom<boolean>(
      'ignore',
      'empty_service',
      (words, refuse) => {
        const [first] = words;
        if (first === undefined) return false;
        return first.text === 'empty_service'
          ? true
          : refuse(`unable to parse ignore value: '${first.text}'`, first.place);
      },
      {
        default: false,
        help: 'answer NXDOMAIN for services with a cluster IP but without ready endpoints',
      },
    ),
    multicluster: zoneList('multicluster', {
      min: 0,
      lastLineCounts: true,
      help: 'zones for imported services (multicluster.x-k8s.io); each must be among ZONES',
    }),
    zonal: flag('zonal', {
      help: 'serve names such as `TOPOZONE.pin._zone.SVC.NS.svc.ZONE` for headless services',
    }),
    topology: setting('topology', choice('prefixes', 'nodes', 'pods'), {
      help: "resolve headless services to the endpoints whose hints (`trafficDistribution`) match the client's node and zone, which come from `topology_zone`, from the nodes' addresses and pod CIDRs, or from the pods' addresses. Each source includes the ones before it; default: all endpoints",
    }),
    topologyZones: each(
      'topology_zone',
      { zone: required(word('ZONE')), prefixes: rest(net('PREFIX'), { min: 1 }) },
      { help: 'for `topology`, treat clients in these prefixes as being in this topology zone' },
    ),
    startupTimeoutMs: lax(
      setting(
        'startup_timeout',
        worded(
          duration('DURATION'),
          (text, reason) => `failed to parse startup_timeout: ${text}, ${reason}`,
        ),
        {
          default: 5000,
          help: 'maximum wait for the first complete listing before the server answers',
        },
      ),
    ),
  },
  retired: {
    upstream: 'ExternalName targets are always resolved by this server; delete the line',
    resyncperiod: 'objects are watched and listed again only if necessary; delete the line',
    transfer: 'use the transfer plugin for zone transfers; delete the line',
    federation: 'Kubernetes no longer has federations; delete the line',
    cidrs:
      'list reverse zones with the zones of the server block, e.g. 10.0.0.0/16; delete the line',
  },
  exclusive: [
    ['namespaces', 'namespace_labels'],
    ['manifests', 'endpoint'],
    ['manifests', 'kubeconfig'],
  ],
  check: (options, at): readonly Problem[] => checkZones(options, at),
  warn({ endpoints }, at): readonly Problem[] {
    if (endpoints.length <= 1) return [];
    const text = `Multiple endpoints have been deprecated, only the first specified endpoint '${endpoints[0]}' is used`;
    return [pluginRemark('kubernetes', at, text, { code: 'directive-warning' })];
  },
});

export type KubernetesOptions = Options<typeof syntax>;

function checkZones(options: KubernetesOptions, at: Place): Problem[] {
  const problems: Problem[] = [];
  if (primaryZone(options.zones) === null) {
    problems.push(
      pluginRemark('kubernetes', at, 'non-reverse zone name must be used', {
        hint: 'PTR answers must point to a name, so list the cluster domain too: kubernetes cluster.local in-addr.arpa.',
      }),
    );
  }
  for (const zone of options.multicluster ?? []) {
    if (options.zones.includes(zone)) continue;
    const all = `[${options.zones.join(' ')}]`;
    const text = `is not authoritative for the multicluster zone ${zone} (authoritative zones: ${all})`;
    problems.push(
      pluginProblem('kubernetes', at, text, { remedy: `Add ${zone} to the zones of kubernetes.` }),
    );
  }
  if (options.zonal && options.noEndpoints) {
    const text = 'zonal requires the endpoint cache; remove noendpoints';
    problems.push(pluginProblem('kubernetes', at, text, { code: 'kubernetes-zonal' }));
  }
  return [...problems, ...checkTopology(options, at)];
}

function checkTopology(options: KubernetesOptions, at: Place): Problem[] {
  const { topology, topologyZones, noEndpoints } = options;
  const problem = (text: string, remedy: string): Problem[] => [
    pluginProblem('kubernetes', at, text, { remedy }),
  ];
  if (topology === null && topologyZones.length > 0)
    return problem('topology_zone has no effect without topology', 'Add topology prefixes.');
  if (topology === 'prefixes' && topologyZones.length === 0) {
    return problem(
      "topology prefixes has no prefixes, so it cannot determine clients' zones",
      'Add topology_zone ZONE PREFIX for each zone, or use topology nodes.',
    );
  }
  if (topology !== null && noEndpoints)
    return problem('topology requires endpoints', 'Remove noendpoints or topology.');
  return [];
}

/** Returns the first zone that is not a reverse zone, or null if there is none. */
export function primaryZone(zones: readonly string[]): string | null {
  return zones.find((zone) => !isReverseZone(zone)) ?? null;
}

export function isReverseZone(zone: string): boolean {
  return /(^|\.)(in-addr|ip6)\.arpa\.$/.test(zone);
}
