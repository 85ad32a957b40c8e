/** `ndots exec POD -- COMMAND …`: runs an ndots command inside a pod, using an ephemeral container. */
import { systemClock } from '../../../server/base/clock.ts';
import { Problem } from '../../../server/base/problem.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { clusterPods } from '../../../tools/pods/cluster-pods.ts';
import { runInPod } from '../../../tools/pods/ephemeral-container.ts';
import { podBehind } from '../../../tools/pods/pod-behind.ts';
import type { ClusterAccess } from '../../../tools/pods/cluster-access.ts';
import { accessOf, withCluster } from '../cluster-options.ts';
import { containerOf } from '../container-options.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { parseExecOptions, type ExecOptions } from './exec-options.ts';
import { coreVersion } from '../version/version.ts';
import { untilSignal } from '../until-signal.ts';
import { clusterNotAsked } from '../../../tools/pods/not-asked.ts';

export const exec: Command = {
  name: 'exec',
  async run(words, io) {
    return run(parseExecOptions(words), io);
  },
};

async function run(options: ExecOptions, io: Io): Promise<number> {
  const access = accessOf(options, io);
  const { namespace, pod } = await podOf(options, io, access);
  const ended = untilSignal();
  const container = containerOf(options, io);
  io.err(`ndots exec: container ${container.name} of pod ${namespace}/${pod}, ${access.name}\n`);
  try {
    return await withCluster(access, (client) =>
      runInPod({
        client,
        clock: systemClock,
        namespace,
        pod,
        container: { ...container, target: options.target, capabilities: options.capabilities },
        startMs: options.startMs,
        out: (bytes) => void process.stdout.write(Buffer.from(bytes)),
        signal: ended,
      }),
    );
  } catch (error) {
    if (ended.aborted) {
      io.err(
        `ndots exec: its output is no longer shown, but ${container.name} continues in the pod until it ends\n`,
      );
      return EXIT.interrupted;
    }
    throw error instanceof ApiFailure ? notAllowed(error) : error;
  }
}

async function podOf(
  { pod: wanted, namespace }: ExecOptions,
  io: Io,
  access: ClusterAccess,
): Promise<{ readonly namespace: string; readonly pod: string }> {
  const source = clusterPods(access, { version: coreVersion, signal: io.signal });
  try {
    const found = await podBehind(source, {
      ...wanted,
      namespace: wanted.namespace ?? namespace,
    });
    if (found.pod !== null) return { namespace: found.namespace, pod: found.pod };
    throw new Problem({
      code: 'no-pod',
      text: `${found.name} has no pod yet`,
      remedy: 'Scale it up, or trace what a pod would do: ndots trace NAME --from deploy/NAME.',
    });
  } finally {
    source.close();
  }
}

function notAllowed(failure: ApiFailure): Problem {
  return clusterNotAsked(failure, {
    remedy:
      failure.kind === 'forbidden'
        ? 'You need get on pods and pods/log, and patch on pods/ephemeralcontainers.'
        : undefined,
  });
}
