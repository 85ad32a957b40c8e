/** Finds the processes that hold a socket by searching only the socket's cgroup. */
import type { Asker, SeenContainer, SeenProcess, WhyUnknown } from '../pair/asker.ts';
import type { CgroupTree } from './cgroup-tree.ts';
import { containerOf } from './container.ts';
import type { PodNames } from './pod-names.ts';
import { RecentlyUsed } from '../../../server/base/recently-used.ts';
import type { QuerySender } from './sent-queries.ts';
import type { KernelSocket } from './network-spaces.ts';
import {
  allProcesses,
  cgroupsOf,
  describeProcess,
  descriptorOf,
  type FileBudget,
  isSocketAt,
  networkOf,
  startedMs,
} from './proc-files.ts';

/** Limits on /proc reads per second. Beyond them, new sockets' processes are not searched for. */
export interface SearchLimits {
  readonly filesPerSecond: number;
  /** For the sockets of one cgroup, so that a pod with many sockets or open files does not use up those of others. */
  readonly filesOfGroup: number;
}

/** A read takes about 2 µs. A proxy may have 50 000 open files. */
const LIMITS: SearchLimits = { filesPerSecond: 100_000, filesOfGroup: 60_000 };
/** The share of a cgroup's reads that is not used to search again for processes of known sockets. */
const LEFT_FOR_NEW = 0.5;
/** Files read for each process in addition to its open ones. */
const FILES_OF_PROCESS = 4;
/** In larger cgroups, the namespace's processes come first. */
const SMALL_GROUP = 8;
const SEARCHED_MAX = 512;
/** The number of sockets whose holders are remembered. They belong to servers, because a client's is searched once. */
const REMEMBERED_MAX = 4096;
/** Milliseconds until further holders of the same socket are noticed. */
const REMEMBERED_MS = 1000;
/** In milliseconds. Allows for the delay between reading two clocks. Start times are rounded down. */
const START_BLUR_MS = 1;

interface Holder {
  readonly pid: number;
  readonly startedMs: number;
  readonly descriptor: string;
  readonly process: SeenProcess;
}

/** The holders of a socket, and the process or processes that are shown for them. */
interface RememberedHolders {
  readonly inode: number;
  readonly holders: readonly Holder[];
  readonly asker: Asker;
  readonly untilMs: number;
  /** True if processes outside the socket's cgroup have been searched, too. */
  readonly isComplete: boolean;
}

export interface SocketHoldersParts {
  /** Null if there is no cgroup v2, so that all processes in the namespace are searched. */
  readonly tree: Pick<CgroupTree, 'pathOf' | 'processesIn'> | null;
  /** The names of this node's pods, or null to leave them out. */
  readonly pods: PodNames | null;
  /** CLOCK_BOOTTIME in milliseconds, with fractions. */
  readonly sinceBootMs: () => number;
  readonly limits?: SearchLimits;
}

/** The place to search for the processes of a socket. */
interface SearchPlace {
  /** Null: in the whole namespace. */
  readonly cgroup: string | null;
  readonly network: string;
  readonly latestStartMs: number;
}

export class SocketHolders {
  readonly #tree: SocketHoldersParts['tree'];
  readonly #pods: PodNames | null;
  readonly #sinceBootMs: () => number;
  /** By cookie. */
  readonly #remembered = new RecentlyUsed<bigint, RememberedHolders>(REMEMBERED_MAX);
  readonly #budget: ReadBudget;

  constructor({ tree, pods, sinceBootMs, limits = LIMITS }: SocketHoldersParts) {
    this.#tree = tree;
    this.#pods = pods;
    this.#sinceBootMs = sinceBootMs;
    this.#budget = new ReadBudget(limits);
  }

  /**
   * @param network the socket's namespace
   * @param sentMs when the packet was sent, which excludes processes that started later
   * @param nowMs on the same clock
   * @param isServer true for a socket that serves many clients, whose processes may be in other cgroups
   */
  find(
    socket: KernelSocket,
    network: string,
    sentMs: number,
    nowMs: number,
    isServer = false,
  ): Asker {
    const cgroup = socket.cgroup === null ? null : (this.#tree?.pathOf(socket.cgroup) ?? null);
    const container = cgroup === null ? null : this.#container(cgroup);
    const known = { container, cgroup: cgroup ?? '', uid: socket.uid };
    const nothing = (why: WhyUnknown): Asker => ({ ...known, processes: [], why });
    if (socket.inode === 0) return nothing('closed');
    const latestStartMs = this.#sinceBootMs() - (nowMs - sentMs) + START_BLUR_MS;
    const budget = this.#budget.of(cgroup);
    const remembered = this.#remembered.get(socket.cookie);
    const isKnown = remembered !== undefined && (!isServer || remembered.isComplete);
    if (isKnown && isStillHeld(remembered, socket, latestStartMs, budget)) {
      // New sockets come before further holders of known ones.
      const mayWait = budget.left < this.#budget.limits.filesOfGroup * LEFT_FOR_NEW;
      if (mayWait || performance.now() <= remembered.untilMs) return remembered.asker;
    }
    if (budget.left <= 0) return nothing('busy');
    const { inode } = socket;
    const place = { cgroup, network, latestStartMs };
    const inside = this.#search(inode, place, budget);
    const outside =
      cgroup === null
        ? []
        : isServer && !isKnown
          ? this.#searchOutside(inode, place, budget)
          : (remembered?.holders ?? []).filter(
              (holder) =>
                isHolder(holder, inode, latestStartMs) &&
                startedMs(holder.pid) === holder.startedMs,
            );
    const found = joined(inside, outside);
    if (typeof found === 'string') return nothing(found);
    const processes = found.map(({ process }) => process);
    const paths = cgroup === null ? cgroupsOf(processes[0]!.pid) : [];
    const path = cgroup ?? paths.find((each) => containerOf(each) !== null) ?? paths.at(-1) ?? '';
    const asker: Asker = {
      container: cgroup === null ? this.#container(path) : container,
      cgroup: path,
      uid: socket.uid,
      processes,
      why: null,
    };
    const untilMs = performance.now() + REMEMBERED_MS;
    const isComplete = isServer || remembered?.isComplete === true;
    const entry = { inode, holders: found, asker, untilMs, isComplete };
    this.#remembered.set(socket.cookie, entry);
    return asker;
  }

  /** Processes noted by kernel programs, which are known even if they have since exited. */
  describe(sender: QuerySender): Asker {
    return (sender.asker ??= this.#describe(sender));
  }

  #describe({ pids, usedBootMs, cgroup, command }: QuerySender): Asker {
    const path = this.#tree?.pathOf(cgroup) ?? '';
    const budget = this.#budget.of(path);
    const processes = pids.map((pid, at): SeenProcess => {
      const started = budget.left > 0 ? startedMs(pid) : null;
      const isIt = started !== null && started <= usedBootMs[at]!;
      const found = isIt ? describeProcess(pid) : null;
      return found ?? { pid, command, commandLine: '', parent: null };
    });
    budget.spend(pids.length * FILES_OF_PROCESS);
    return { container: this.#container(path), cgroup: path, uid: null, processes, why: null };
  }

  #container(path: string): SeenContainer | null {
    const found = containerOf(path);
    if (found === null || found.podUid === '') return found;
    const pod = this.#pods?.nameOf(found.podUid) ?? null;
    return pod === null ? found : { ...found, pod };
  }

  /** Searches the socket's cgroup, or the whole namespace if there is none. */
  #search(inode: number, place: SearchPlace, budget: FileBudget): readonly Holder[] | WhyUnknown {
    const { cgroup, network } = place;
    const group = cgroup === null ? allProcesses() : this.#tree!.processesIn(cgroup);
    let refused = false;
    const isIn = (pid: number): boolean => {
      budget.spend(1);
      const found = networkOf(pid);
      if (found === 'refused') refused = true;
      return typeof found === 'object' && found.name === network;
    };
    const members = cgroup !== null && group.length <= SMALL_GROUP ? group : group.filter(isIn);
    const found = this.#holdersAmong(members.slice(-SEARCHED_MAX), inode, place, budget);
    return refused && found === 'ended' ? 'refused' : found;
  }

  /**
   * Searches the processes that are not in the socket's cgroup. A service manager creates the sockets of a server that
   * it starts on demand (socket activation), and keeps them open. Because this reads the files of the whole machine, it
   * is only done once for a server's socket.
   */
  #searchOutside(inode: number, place: SearchPlace, budget: FileBudget): readonly Holder[] {
    const inside = new Set(this.#tree!.processesIn(place.cgroup!));
    const others = allProcesses().filter((pid) => !inside.has(pid));
    const found = this.#holdersAmong(others, inode, place, budget);
    return typeof found === 'string' ? [] : found;
  }

  #holdersAmong(
    pids: readonly number[],
    inode: number,
    { latestStartMs }: SearchPlace,
    budget: FileBudget,
  ): readonly Holder[] | WhyUnknown {
    let refused = false;
    const holders: Holder[] = [];
    // Newest first, because they live shortest.
    for (let at = pids.length - 1; at >= 0; at--) {
      const pid = pids[at]!;
      budget.spend(FILES_OF_PROCESS);
      const started = startedMs(pid);
      if (started === null || started > latestStartMs) continue;
      const held = descriptorOf(pid, inode, budget);
      // The rest may have the socket as well, so the processes found so far do not count.
      if (held === 'busy') return held;
      if (held === 'refused') refused = true;
      if (held === null || typeof held === 'string') continue;
      const process = describeProcess(pid);
      // A later process with the same PID would have a different start time.
      if (process === null || startedMs(pid) !== started) continue;
      holders.push({ pid, startedMs: started, descriptor: held.descriptor, process });
    }
    if (holders.length > 0) return holders.toReversed();
    return refused ? 'refused' : 'ended';
  }
}

/** The holders inside and outside a cgroup, or why there are none. */
function joined(
  inside: readonly Holder[] | WhyUnknown,
  outside: readonly Holder[],
): readonly Holder[] | WhyUnknown {
  if (typeof inside === 'string')
    return inside === 'ended' && outside.length > 0 ? outside : inside;
  return withOthers(inside, outside);
}

/** The processes, followed by those that only `others` contains. */
export function withOthers<T extends { readonly pid: number }>(
  processes: readonly T[],
  others: readonly T[],
): readonly T[] {
  const pids = new Set(processes.map(({ pid }) => pid));
  return [...processes, ...others.filter(({ pid }) => !pids.has(pid))];
}

/**
 * True if each of the processes still has the socket. A server may have thousands of open files, which would otherwise
 * be read for each of its replies.
 */
function isStillHeld(
  { inode, holders }: RememberedHolders,
  socket: KernelSocket,
  latestStartMs: number,
  budget: FileBudget,
): boolean {
  if (inode !== socket.inode) return false;
  budget.spend(holders.length);
  return holders.every((holder) => isHolder(holder, inode, latestStartMs));
}

/**
 * True if the process still has the socket. A later process with the same ID would have to have the same socket, which
 * is noticed when the socket is searched for again.
 */
function isHolder(holder: Holder, inode: number, latestStartMs: number): boolean {
  const { pid, descriptor } = holder;
  try {
    return holder.startedMs <= latestStartMs && isSocketAt(pid, descriptor, inode);
  } catch {
    // It has exited or closed the socket.
    return false;
  }
}

/** Counts the files that are read in each second, in total and for each cgroup. */
class ReadBudget {
  readonly limits: SearchLimits;
  readonly #byGroup = new Map<string, number>();
  #secondMs = -Infinity;
  #all = 0;

  constructor(limits: SearchLimits) {
    this.limits = limits;
  }

  /** @param group null if the machine has no cgroups */
  of(group: string | null): FileBudget {
    const nowMs = performance.now();
    if (nowMs - this.#secondMs > 1000) {
      this.#secondMs = nowMs;
      this.#all = 0;
      this.#byGroup.clear();
    }
    const { filesPerSecond, filesOfGroup } = this.limits;
    const most = group === null ? filesPerSecond : filesOfGroup;
    const key = group ?? '';
    const spent = (): number => this.#byGroup.get(key) ?? 0;
    const left = (): number => Math.min(filesPerSecond - this.#all, most - spent());
    return {
      get left() {
        return left();
      },
      spend: (files) => {
        this.#all += files;
        this.#byGroup.set(key, spent() + files);
      },
    };
  }
}
