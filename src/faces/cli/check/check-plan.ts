/**
 * Determines which checks to run on which servers, from the check file, the command line, the cluster and this machine.
 */
import { systemClock } from '../../../server/base/clock.ts';
import { Problem } from '../../../server/base/problem.ts';
import { secureRandom } from '../../../server/base/random.ts';
import { Recent } from '../../../server/base/recent.ts';
import { errorCode } from '../../../server/base/error-code.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { getObject } from '../../../server/kube/api/one-object.ts';
import { serviceAddresses } from '../../../tools/pods/dns-service.ts';
import { uniqueServers } from '../../../tools/probe/probe-queries.ts';
import { planChecks, readCheckFile, type CheckPlan } from '../../../tools/probe/check-file.ts';
import type { ProbeContext } from '../../../tools/probe/check.ts';
import { checkKinds } from '../../../tools/probe/kinds.ts';
import { clusterObjects } from '../../../tools/probe/cluster-objects.ts';
import type { ProbeServer } from '../../../tools/probe/network.ts';
import type { PlannedCheck } from '../../../tools/probe/check-file.ts';
import {
  findServers,
  type FoundServers,
  type ServiceChoice,
} from '../../../tools/probe/replicas.ts';
import { systemProbeNetwork } from '../../../tools/probe/system-network.ts';
import { readNameservers } from '../../../server/engine/contract/nameservers.ts';
import { liveLookup } from './check-lookup.ts';
import { chosen, type CheckOptions } from './check-options.ts';
import { accessOf, withCluster } from '../cluster-options.ts';
import type { Io } from '../command.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';

/** The default checks: those that need no names, and the search path check for the one name that every cluster has. */
const usual = checkKinds
  .filter(({ parameters }) =>
    Object.values(parameters).every((each) => each.fallback !== undefined),
  )
  .map(({ name: kind }) => ({ kind, values: {} }))
  .concat([{ kind: 'search-walk', values: { name: 'kubernetes.default' } }]);

/**
 * The checks in the file, or the default checks.
 * @throws Problem
 */
export async function planOf({ file }: CheckOptions, io: Io): Promise<CheckPlan> {
  if (file === null) return planChecks({}, usual);
  if (file === '-')
    return readCheckFile(await io.stdin('file of checks', FILE_MAX.manifest), 'standard input');
  let content: string;
  try {
    content = readFileText(file, FILE_MAX.manifest);
  } catch (error) {
    throw new Problem({
      code: 'file-unreadable',
      text: `${file} cannot be read: ${whyFailed(error)}`,
      ...(errorCode(error) === 'ENOENT' && {
        remedy: `${io.program} check init > ${file} writes a sample.`,
      }),
      cause: error,
    });
  }
  return readCheckFile(content, file);
}

/**
 * The selected checks. If there is no service and no replica, checks that need replicas could only be unknown, so they
 * are skipped with a note.
 */
export function checksOf(
  plan: CheckPlan,
  options: CheckOptions,
  note: (text: string) => void,
): readonly PlannedCheck[] {
  const checks = chosen(plan.checks, options.only);
  const named = options.service !== null || options.replicas.length > 0;
  if (options.file !== null || options.only.length > 0 || named) return checks;
  const left = checks.filter(({ kind }) => kind.needs === 'replicas');
  const names = left.map(({ kind }) => kind.name).join(', ');
  note(`these checks are skipped because they need replicas: ${names}; use --service or --replica`);
  return checks.filter((check) => !left.includes(check));
}

/** The servers from the first source that has any, in the order command line, file, service, this machine. */
export async function contextOf(
  plan: CheckPlan,
  options: CheckOptions,
  io: Io,
  labels: ServiceLabels | null = null,
): Promise<ProbeContext> {
  const service = options.service ?? plan.service;
  const [namespace = '', name = ''] = service?.split('/') ?? [];
  const choice: ServiceChoice | null =
    labels !== null
      ? { ...labels, name: null }
      : service === null
        ? null
        : { namespace, name, labels: null };
  const found: FoundServers =
    choice === null
      ? { vip: [], replicas: [], missing: null }
      : await withCluster(accessOf(options, io), (client) =>
          findServers(client, choice, io.signal),
        );
  if (found.missing !== null) tellOnce(found.missing, io);
  const vip = [options.vip, plan.vip ?? [], found.vip, ownServers()].find(
    ({ length }) => length > 0,
  );
  const replicas = [options.replicas, plan.replicas ?? [], found.replicas].find(
    ({ length }) => length > 0,
  );
  return {
    ...plan,
    network: systemProbeNetwork(secureRandom, liveLookup(plan.timeoutMs)),
    random: secureRandom,
    clock: systemClock,
    objects: clusterObjects(
      (run) => withCluster(accessOf(options, io), run),
      systemClock,
      io.signal,
    ),
    vip: uniqueServers(vip ?? []),
    replicas: uniqueServers(replicas ?? []),
  };
}

/** Prints each warning about a service only once. */
const told = new Recent<string, true>(systemClock, Infinity, 100);

function tellOnce(why: string, io: Io): void {
  if (told.get(why) === true) return;
  told.put(why, true);
  io.err(`ndots check: the address of the service itself is unknown: ${why}\n`);
}

/** A service selected by labels, as in Kuberhealthy's own check. */
export interface ServiceLabels {
  /** `''`: all namespaces. */
  readonly namespace: string;
  /** Label selector in the API's syntax. */
  readonly labels: string;
}

/** A service's ClusterIP, or null if it has none. Rejects if the API server does not reply. */
export async function clusterIpOf(
  namespace: string,
  name: string,
  options: CheckOptions,
  io: Io,
): Promise<string | null> {
  return withCluster(accessOf(options, io), (client) =>
    clusterIpBy(client, namespace, name, io.signal),
  );
}

/** Like `clusterIpOf`, with an existing client. */
export async function clusterIpBy(
  client: ApiClient,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<string | null> {
  const path = `/api/v1/namespaces/${namespace}/services/${name}`;
  const request = { path, task: `get services ${name}`, waitMs: 5000, signal };
  return serviceAddresses(await getObject(client, request))[0] ?? null;
}

/** The servers in /etc/resolv.conf. */
export function ownServers(): readonly ProbeServer[] {
  try {
    const text = readFileText('/etc/resolv.conf', FILE_MAX.small);
    return readNameservers(text).map((host) => ({ host, port: 53 }));
  } catch {
    return [];
  }
}
