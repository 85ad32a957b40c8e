/** The container and process at one end of an exchange, or why they are unknown. */

export interface SeenContainer {
  /** 64 hexadecimal digits. */
  readonly id: string;
  /** `containerd`, `cri-o`, `docker` or `podman`. Empty if the path does not tell. */
  readonly runtime: string;
  /** The UID that its pod has in the API server. Empty outside Kubernetes. */
  readonly podUid: string;
  /** `NAMESPACE/NAME` of its pod. Omitted if unknown. */
  readonly pod?: string;
}

export interface SeenProcess {
  readonly pid: number;
  /** Its PID inside its own namespace. Omitted if both are the same. */
  readonly innerPid?: number;
  /** At most 15 characters. */
  readonly command: string;
  /** The program and its arguments, shortened. Empty for a kernel thread. */
  readonly commandLine: string;
  readonly parent: { readonly pid: number; readonly command: string } | null;
}

/** The reason why a process is unknown, because ndots does not guess. */
export type WhyUnknown =
  /** The socket was closed before it could be looked up, or may have been because the reply had already arrived. */
  | 'closed'
  /** No network namespace on this machine has this address. */
  | 'elsewhere'
  /** Several namespaces have the address. */
  | 'several'
  /** The process exited or passed on the socket before its files were read. */
  | 'ended'
  /** Permission was denied to read the process's files or to enter the namespace. */
  | 'refused'
  /** There were too many new sockets to search for their processes. */
  | 'busy'
  /** The query was not captured live. */
  | 'unseen';

export interface Asker {
  /** Null: not in a container, or unknown. */
  readonly container: SeenContainer | null;
  /** The cgroup's path, or empty if unknown. */
  readonly cgroup: string;
  /** The user who owns the socket, or null if unknown. */
  readonly uid: number | null;
  /** The processes that hold the socket, which may be several after a fork. If empty, see `why`. */
  readonly processes: readonly SeenProcess[];
  readonly why: WhyUnknown | null;
}

export function unknownAsker(why: WhyUnknown): Asker {
  let asker = unknown.get(why);
  if (asker === undefined)
    unknown.set(why, (asker = { container: null, cgroup: '', uid: null, processes: [], why }));
  return asker;
}

/** One for each reason, because most queries of a busy capture may need one. */
const unknown = new Map<WhyUnknown, Asker>();
