/** `ndots capture --process`: prepares to look up socket owners in the kernel. */
import { existsSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { noNamespace } from './capture-live.ts';
import { errorCode } from '../../../server/base/error-code.ts';
import { Problem } from '../../../server/base/problem.ts';
import { LibcMissing, SystemError } from '../../../server/runtime/libc.ts';
import { inNetworkNamespace } from '../../../server/runtime/network-namespace.ts';
import { addressesIn, findsItself, socketsIn } from '../../../server/runtime/network-space.ts';
import type { FoundSocket } from '../../../server/runtime/socket-lookup.ts';
import { runInShortSlices } from '../../../server/runtime/scheduling.ts';
import { SocketPrograms } from '../../../server/runtime/socket-programs.ts';
import { TranslationLookup } from '../../../server/runtime/translation-lookup.ts';
import { bootClock, wallClock } from '../../../server/runtime/wall-clock.ts';
import {
  Attribution,
  type AttributedEvents,
  type TranslationTable,
} from '../../../tools/capture/process/attribution.ts';
import { CgroupTree, mountedCgroups } from '../../../tools/capture/process/cgroup-tree.ts';
import { NetworkSpaces } from '../../../tools/capture/process/network-spaces.ts';
import { PodNames } from '../../../tools/capture/process/pod-names.ts';
import { SentQueries } from '../../../tools/capture/process/sent-queries.ts';
import { SocketHolders } from '../../../tools/capture/process/socket-holders.ts';

const OWN = '/proc/self/ns/net';
/** The host's network namespace, in which kube-proxy translates addresses. */
const MACHINE = '/proc/1/ns/net';
/** The host's PID namespace always has this inode number, PROC_PID_INIT_INO. */
const FIRST_PIDS = 'pid:[4026531836]';
/** A file that every cgroup has except the machine's root. */
const NOT_ROOT = 'cgroup.type';
/** A lookup's socket is open for only a few milliseconds, so the search must not wait for a CPU. */
const PRIORITY = -10;
const WARM_UP = 5;
const UNPRIVILEGED = new Set(['EPERM', 'EACCES']);

/** The search method for processes, and its namespace. */
export interface ProcessChoice {
  /** The namespace to capture packets in, or null for our own. */
  readonly netns: string | null;
  readonly ports: readonly number[];
  /** True if kernel programs record the senders. */
  readonly bpf: boolean;
  /** True if the output has the queries that servers send to answer a lookup. */
  readonly isUpstreamShown: boolean;
}

/**
 * @param events receives what is found
 * @param note called for anything that limits the result
 * @throws Problem
 */
export function openAttribution(
  { netns, ports, bpf, isUpstreamShown }: ProcessChoice,
  events: AttributedEvents,
  note: (text: string) => void,
): Attribution {
  const path = netns ?? OWN;
  const cgroups = mountedCgroups(readFileSync('/proc/self/mountinfo', 'utf8'));
  if (bpf) requireForPrograms(cgroups);
  try {
    const tree = cgroups === null ? null : new CgroupTree(cgroups);
    const [nowMs, sinceBootMs] = [wallClock(), bootClock()];
    const holders = new SocketHolders({ tree, pods: new PodNames(), sinceBootMs });
    const network = readlinkSync(OWN);
    // Runs the code once, so that the first query does not have to wait for compilation.
    const warmUp = (own: FoundSocket): void => {
      for (let i = 0; i < WARM_UP; i++) holders.find(own, network, nowMs(), nowMs());
    };
    if (!findsItself(warmUp))
      throw new Problem({
        code: 'process-no-sockets',
        text: 'this kernel does not report which socket a packet belongs to',
        hint: 'The module udp_diag is missing, or seccomp forbids netlink sockets.',
        remedy: 'Load it on the node: modprobe udp_diag; modprobe tcp_diag',
      });
    const spaces = new NetworkSpaces(
      { sockets: socketsIn, addresses: addressesIn },
      { name: `net:[${statSync(path).ino}]`, path },
    );
    const sent = bpf ? new SentQueries(new SocketPrograms(cgroups!, ports)) : null;
    if (bpf && existsSync(join(cgroups!, NOT_ROOT)))
      note(
        '--bpf sees only processes below the cgroup that is mounted here; in Kubernetes, mount the node’s /sys/fs/cgroup',
      );
    if (cgroups === null)
      note('no cgroup v2 here, so containers are read from the processes, which takes longer');
    if (readlinkSync('/proc/self/ns/pid') !== FIRST_PIDS)
      note('processes in other PID namespaces are not visible; in Kubernetes, set hostPID: true');
    runInShortSlices(PRIORITY);
    const translations = translationsAt(path);
    const clocks = { nowMs, sinceBootMs };
    return new Attribution(
      { spaces, holders, sent, translations, isUpstreamShown, ...clocks },
      events,
    );
  } catch (error) {
    throw told(error, path, bpf);
  }
}

function requireForPrograms(cgroups: string | null): void {
  if (cgroups === null)
    throw new Problem({
      code: 'process-no-cgroups',
      text: '--bpf needs cgroup v2, which is not mounted here',
      remedy:
        'Omit --bpf to find sockets only while they are open. In a pod, mount the node’s /sys/fs/cgroup.',
    });
  if (readlinkSync('/proc/self/ns/pid') !== FIRST_PIDS)
    throw new Problem({
      code: 'process-no-pids',
      text: '--bpf needs the host’s PID namespace, because the kernel reports host PIDs',
      hint: 'A node that is itself a container, as in kind and k3d, has another one even with hostPID: true.',
      remedy: 'In Kubernetes, set hostPID: true, or omit --bpf.',
    });
}

/** Connection tracking tables of the host and of the namespace being captured. */
function translationsAt(path: string): readonly TranslationTable[] {
  const found: TranslationTable[] = [];
  const paths = [path, MACHINE].filter((each) => existsSync(each));
  const seen = new Set<number>();
  for (const each of paths)
    try {
      const { ino } = statSync(each);
      if (seen.has(ino)) continue;
      seen.add(ino);
      found.push(inNetworkNamespace(each, () => new TranslationLookup()));
    } catch {
      // The namespace cannot be entered, so the only known translations are those visible in packets.
    }
  return found;
}

function told(error: unknown, path: string, bpf: boolean): unknown {
  if (error instanceof Problem) return error;
  if (error instanceof LibcMissing)
    return new Problem({
      code: 'process-not-here',
      text: `cannot find processes here: ${error.message}`,
      remedy: 'Leave --process out.',
      cause: error,
    });
  const code = errorCode(error);
  if (bpf && error instanceof SystemError && error.syscall.startsWith('bpf'))
    return new Problem({
      code: 'process-no-bpf',
      text: `cannot load BPF programs into the kernel: ${error.message}`,
      hint: UNPRIVILEGED.has(code) ? whyRefused() : whyUnknown(code),
      remedy: 'Omit --bpf to find sockets only while they are open.',
      cause: error,
    });
  if (UNPRIVILEGED.has(code))
    return new Problem({
      code: 'process-not-permitted',
      text: 'cannot enter network namespaces: permission denied',
      hint: '--process needs CAP_SYS_ADMIN (network namespaces), CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (files of processes), and CAP_NET_ADMIN (connection tracking).',
      remedy: 'Use sudo, or omit --process.',
      cause: error,
    });
  return code === 'ENOENT' && !existsSync(path) ? noNamespace(path, error) : error;
}

function whyRefused(): string {
  try {
    const [, mode] = /\[(\w+)\]/.exec(readFileSync('/sys/kernel/security/lockdown', 'utf8')) ?? [];
    if (mode === 'confidentiality')
      return 'The kernel is locked down (confidentiality), which forbids programs that read packets.';
  } catch {
    // The kernel has no lockdown.
  }
  return 'A seccomp profile forbids bpf, CAP_SYS_ADMIN is missing, or another program has exclusive use of the root cgroup.';
}

function whyUnknown(code: string): string {
  return code === 'ENOSYS'
    ? 'The kernel has no bpf, or seccomp forbids it.'
    : 'It needs Linux 5.11 or later.';
}
