/** Finds the processes that hold a socket by searching only the socket's cgroup. */
import { readFileSync } from 'node:fs';
import type { Asker, SeenContainer, SeenProcess, WhyUnknown } from '../pair/asker.ts';
import type { CgroupTree } from './cgroup-tree.ts';
import { containerOf } from './container.ts';
import type { PodNames } from './pod-names.ts';
import { RecentlyUsed } from './recently-used.ts';
import type { QuerySender } from './sent-queries.ts';
import type { KernelSocket } from './network-spaces.ts';
import {
  allProcesses,
  cgroupsOf,
  describeProcess,
  descriptorOf,
  isSocketAt,
  networkOf,
  startedMs,
} from './proc-files.ts';

/** Limit on /proc reads, which take about 2 µs each. Beyond it, new sockets' processes are not searched for. */
const FILES_PER_SECOND = 100_000;
/** Files read for each process in addition to its open ones. */
const FILES_OF_PROCESS = 4;
/** In larger cgroups, the namespace's processes come first. */
const SMALL_GROUP = 8;
/** Limit on processes to search for a socket. */
const SEARCHED_MAX = 512;
/** The number of sockets whose holders are remembered. They belong to servers, because a client's is searched once. */
const REMEMBERED_MAX = 4096;
/** Milliseconds until further holders of the same socket are noticed. */
const REMEMBERED_MS = 1000;
/** In milliseconds. Allows for the rounding of start times and the delay between reading two clocks. */
const START_BLUR_MS = 20;

interface Holder {
  readonly pid: number;
  readonly startedMs: number;
  readonly descriptor: string;
}

/** The holders of a socket, and the process or processes that are shown for them. */
interface RememberedHolders {
  readonly inode: number;
  readonly holders: readonly Holder[];
  readonly asker: Asker;
  readonly untilMs: number;
}

export class SocketHolders {
  readonly #tree: CgroupTree | null;
  readonly #pods: PodNames | null;
  /** By cookie. */
  readonly #remembered = new RecentlyUsed<bigint, RememberedHolders>(REMEMBERED_MAX);
  #secondMs = -Infinity;
  readonly #spent = { files: 0 };

  /**
   * @param tree null if there is no cgroup v2, so that all processes in the namespace are searched
   * @param pods the names of this node's pods, or null to leave them out
   */
  constructor(tree: CgroupTree | null, pods: PodNames | null) {
    this.#tree = tree;
    this.#pods = pods;
  }

  /**
   * @param network the socket's namespace
   * @param sentMs when the packet was sent, which excludes processes that started later
   * @param nowMs on the same clock
   */
  find(socket: KernelSocket, network: string, sentMs: number, nowMs: number): Asker {
    const cgroup = socket.cgroup === null ? null : (this.#tree?.pathOf(socket.cgroup) ?? null);
    const container = cgroup === null ? null : this.#container(cgroup);
    const known = { container, cgroup: cgroup ?? '', uid: socket.uid };
    const nothing = (why: WhyUnknown): Asker => ({ ...known, processes: [], why });
    if (socket.inode === 0) return nothing('closed');
    if (!this.#mayRead()) return nothing('busy');
    const sinceBootMs = uptimeMs() - (nowMs - sentMs) + START_BLUR_MS;
    const remembered = this.#remembered.get(socket.cookie);
    if (remembered !== undefined && this.#stillHeld(remembered, socket, sinceBootMs))
      return remembered.asker;
    const found = this.#search(socket.inode, cgroup, network, sinceBootMs);
    if (typeof found === 'string') return nothing(found);
    const { processes, holders } = found;
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
    this.#remembered.set(socket.cookie, { inode: socket.inode, holders, asker, untilMs });
    return asker;
  }

  /**
   * True if each of the processes still has the socket. A server may have thousands of open files, which would
   * otherwise be read for each of its replies.
   */
  #stillHeld(
    { inode, holders, untilMs }: RememberedHolders,
    socket: KernelSocket,
    latestStartMs: number,
  ): boolean {
    if (inode !== socket.inode || performance.now() > untilMs) return false;
    this.#spent.files += holders.length * 2;
    try {
      return holders.every(
        ({ pid, startedMs: beganMs, descriptor }) =>
          beganMs <= latestStartMs &&
          isSocketAt(pid, descriptor, inode) &&
          startedMs(pid) === beganMs,
      );
    } catch {
      // A process has exited or closed the socket.
      return false;
    }
  }

  /** True while this second's limit allows more reads. */
  #mayRead(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#secondMs > 1000) {
      this.#secondMs = nowMs;
      this.#spent.files = 0;
    }
    return this.#spent.files <= FILES_PER_SECOND;
  }

  /** Processes noted by kernel programs, which are known even if they have since exited. */
  describe(sender: QuerySender, sentMs: number, nowMs: number): Asker {
    return (sender.asker ??= this.#describe(sender, sentMs, nowMs));
  }

  #describe({ pids, cgroup, command }: QuerySender, sentMs: number, nowMs: number): Asker {
    const path = this.#tree?.pathOf(cgroup) ?? '';
    const latestStartMs = uptimeMs() - (nowMs - sentMs) + START_BLUR_MS;
    const processes = pids.map((pid): SeenProcess => {
      const started = this.#mayRead() ? startedMs(pid) : null;
      const isIt = started !== null && started <= latestStartMs;
      const found = isIt ? describeProcess(pid) : null;
      return found ?? { pid, command, commandLine: '', parent: null };
    });
    this.#spent.files += pids.length * FILES_OF_PROCESS;
    return { container: this.#container(path), cgroup: path, uid: null, processes, why: null };
  }

  #container(path: string): SeenContainer | null {
    const found = containerOf(path);
    if (found === null || found.podUid === '') return found;
    const pod = this.#pods?.nameOf(found.podUid) ?? null;
    return pod === null ? found : { ...found, pod };
  }

  #search(
    inode: number,
    cgroup: string | null,
    network: string,
    latestStartMs: number,
  ): { processes: readonly SeenProcess[]; holders: readonly Holder[] } | WhyUnknown {
    const group = cgroup === null ? allProcesses() : this.#tree!.processesIn(cgroup);
    let refused = false;
    const isIn = (pid: number): boolean => {
      const found = networkOf(pid);
      if (found === 'refused') refused = true;
      return typeof found === 'object' && found.name === network;
    };
    const members = cgroup !== null && group.length <= SMALL_GROUP ? group : group.filter(isIn);
    const processes: SeenProcess[] = [];
    const holders: Holder[] = [];
    // Newest first, because they live shortest.
    for (let at = members.length - 1; at >= Math.max(0, members.length - SEARCHED_MAX); at--) {
      const pid = members[at]!;
      this.#spent.files += FILES_OF_PROCESS;
      const started = startedMs(pid);
      if (started === null || started > latestStartMs) continue;
      const held = descriptorOf(pid, inode, this.#spent);
      if (held === 'refused') refused = true;
      if (held === null || typeof held === 'string') continue;
      const process = describeProcess(pid);
      // A later process with the same PID would have a different start time.
      if (process === null || startedMs(pid) !== started) continue;
      processes.push(process);
      holders.push({ pid, startedMs: started, descriptor: held.descriptor });
    }
    if (processes.length > 0) return { processes: processes.toReversed(), holders };
    return refused ? 'refused' : 'ended';
  }
}

function uptimeMs(): number {
  return Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 1000;
}
