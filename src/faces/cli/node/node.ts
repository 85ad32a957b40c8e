/** `ndots node NODE -- COMMAND …`: runs an ndots command with access to a node's network and processes. */
import { systemClock } from '../../../server/base/clock.ts';
import { Problem } from '../../../server/base/problem.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { clusterNotAsked } from '../../../tools/pods/not-asked.ts';
import { findObject } from '../../../server/kube/api/one-object.ts';
import { runOnNode } from '../../../tools/pods/node-pod.ts';
import { accessOf, withCluster } from '../cluster-options.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { containerOf } from '../container-options.ts';
import { untilSignal } from '../until-signal.ts';
import { parseNodeOptions, type NodeOptions } from './node-options.ts';

const REQUEST_MS = 10_000;

export const node: Command = {
  name: 'node',
  async run(words, io) {
    const options = parseNodeOptions(words);
    const access = accessOf(options, io);
    const namespace = options.namespace ?? access.namespace;
    try {
      return await withCluster(access, (client) => run(options, client, namespace, io));
    } catch (error) {
      throw error instanceof ApiFailure ? notAllowed(error, namespace) : error;
    }
  },
};

async function run(
  options: NodeOptions,
  client: ApiClient,
  namespace: string,
  io: Io,
): Promise<number> {
  const signal = untilSignal();
  await requireNode(client, options.node, signal);
  const { name, ...container } = containerOf(options, io);
  io.err(`ndots node: pod ${namespace}/${name} on ${options.node}; Ctrl-C deletes it\n`);
  const code = await runOnNode({
    ...options,
    ...container,
    client,
    clock: systemClock,
    namespace,
    pod: name,
    out: (bytes) => void process.stdout.write(Buffer.from(bytes)),
    signal,
  });
  return code ?? EXIT.interrupted;
}

/** Checks that the node exists, because otherwise the pod would wait forever. */
async function requireNode(client: ApiClient, name: string, signal: AbortSignal): Promise<void> {
  const request = { task: `get nodes ${name}`, waitMs: REQUEST_MS, signal };
  try {
    const path = `/api/v1/nodes/${name}`;
    if ((await findObject(client, { path, ...request })) !== null) return;
  } catch (error) {
    // This right is optional, because startup has a timeout anyway.
    if (error instanceof ApiFailure && error.kind === 'forbidden') return;
    throw error;
  }
  throw new Problem({
    code: 'not-found',
    text: `there is no node "${name}"`,
    remedy: 'kubectl get nodes lists them.',
  });
}

function notAllowed(failure: ApiFailure, namespace: string): Problem {
  return clusterNotAsked(failure, {
    remedy:
      failure.kind === 'forbidden'
        ? `You need create, get and delete on pods, get on pods/log, and a namespace with the privileged Pod Security level: kubectl label namespace ${namespace} pod-security.kubernetes.io/enforce=privileged, or -n NAMESPACE.`
        : undefined,
  });
}
