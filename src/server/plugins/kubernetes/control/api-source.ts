/** The API server as a source of cluster objects. */
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { Random } from '../../../base/random.ts';
import { apiServerSource, type ApiServerParts } from '../../../kube/api/api-server-source.ts';
import { ownVersion } from '../../../engine/contract/own-version.ts';
import type { RestHooks } from '../../../kube/api/client.ts';
import {
  endpointConnection,
  inClusterConnection,
  kubeconfigConnection,
  type ApiConnection,
} from '../../../kube/api/connection.ts';
import type { Source } from '../../../kube/store/object-source.ts';
import { memoryLimit } from '../../../runtime/memory-limit.ts';
import { memoryShare } from '../../../runtime/memory-share.ts';
import { OBJECT_MEMORY } from '../../../kube/store/bounded-stores.ts';
import { shareOfThread } from '../../../kube/api/work-share.ts';
import { defaultBuckets } from '../../../metrics/buckets.ts';
import type { Registry } from '../../../metrics/registry.ts';
import { clusterRecords, type ClusterRecord } from './cluster-records.ts';
import type { SourcePlan } from './source-plan.ts';

export interface SourceParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Watches the API server given in the plan.
 * @throws Problem (files, environment)
 */
export function apiSource(plan: SourcePlan, parts: SourceParts): Source<ClusterRecord> {
  const { clock, log, random } = parts;
  return apiServerSource({
    connection: connect(plan, parts),
    wanted: plan.wanted,
    reduction: clusterRecords(plan),
    clock,
    random,
    log,
    version: ownVersion(),
    hooks: restHooks(parts.metrics),
    limits: plan.limits,
    memory: plan.apiserverMemory ?? memoryShare(memoryLimit(), OBJECT_MEMORY),
    ...memoryMetrics(parts.metrics),
    failed: failureMetric(parts.metrics),
    share: shareOfThread(clock),
    ...(plan.snapshot === null ? {} : { snapshotFile: plan.snapshot }),
  });
}

/** `kubeconfig` takes precedence over `endpoint`, as in CoreDNS. */
function connect(
  { kubeconfig, endpoint, tls }: SourcePlan,
  { clock, env }: SourceParts,
): ApiConnection {
  if (kubeconfig !== null)
    return kubeconfigConnection(kubeconfig.file, kubeconfig.context || undefined, clock);
  return endpoint === null
    ? inClusterConnection({ environment: env })
    : endpointConnection(endpoint, tls);
}

function memoryMetrics(
  metrics: Registry,
): Pick<ApiServerParts<ClusterRecord>, 'leftOut' | 'taken'> {
  const bytes = metrics.gauge(
    'ndots_kubernetes_apiserver_bytes',
    "Memory used by the API server's objects on the control thread.",
  );
  const left = metrics.counter(
    'ndots_kubernetes_apiserver_left_out_total',
    'API server objects and changes that were omitted because of apiserver_memory, by kind.',
    ['kind'],
  );
  return {
    taken: (count) => bytes.set(count),
    leftOut: (kind) => left.with(kind).add(1),
  };
}

function failureMetric(metrics: Registry): NonNullable<ApiServerParts<ClusterRecord>['failed']> {
  const failures = metrics.counter(
    'ndots_kubernetes_apiserver_failures_total',
    'API server lists and watches that failed or were aborted, by kind of failure; large: a list that did not end.',
    ['kind'],
  );
  return (kind) => failures.with(kind).add(1);
}

function restHooks(metrics: Registry): RestHooks {
  const requests = metrics.counter(
    'coredns_kubernetes_rest_client_requests_total',
    'Number of HTTP requests, partitioned by status code, method, and host.',
    ['code', 'method', 'host'],
  );
  const duration = metrics.histogram(
    'coredns_kubernetes_rest_client_request_duration_seconds',
    'Request latency in seconds. Broken down by verb and host.',
    ['verb', 'host'],
    defaultBuckets,
  );
  const limited = metrics.histogram(
    'coredns_kubernetes_rest_client_rate_limiter_duration_seconds',
    'Client side rate limiter latency in seconds. Broken down by verb and host.',
    ['verb', 'host'],
    defaultBuckets,
  );
  return {
    requested: ({ code, method, host }) => requests.with(code, method, host).add(1),
    took: ({ verb, host }, seconds) => duration.with(verb, host).observe(seconds),
    heldBack: ({ verb, host }, seconds) => limited.with(verb, host).observe(seconds),
  };
}
