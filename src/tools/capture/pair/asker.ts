/** The container and process at one end of an exchange, or why they are unknown. */

export interface SeenContainer {
  /** 64 hexadecimal digits. */
  readonly id: string;
  /** `containerd`, `cri-o`, `docker`, `podman`; empty if the path does not say. */
  readonly runtime: string;
  /** The UID of its pod in the API server; empty outside Kubernetes. */
  readonly podUid: string;
}

export interface SeenProcess {
  readonly pid: number;
  /** Its PID in its own namespace; omitted if equal. */
  readonly innerPid?: number;
  /** At most 15 characters. */
  readonly command: string;
  /** The program and its arguments, shortened; empty for a kernel thread. */
  readonly commandLine: string;
  readonly parent: { readonly pid: number; readonly command: string } | null;
}

/** Why a process is unknown. ndots does not guess. */
export type WhyUnknown =
  /** The socket was closed before it was looked up, or might have been because the reply had already arrived. */
  | 'closed'
  /** No network namespace on this machine has the address. */
  | 'elsewhere'
  /** Several namespaces have the address. */
  | 'several'
  /** The process exited or passed the socket on before its files were read. */
  | 'ended'
  /** Permission to read process files or enter the namespace was denied. */
  | 'refused'
  /** There were too many new sockets, so the search for their processes was skipped. */
  | 'busy'
  /** The query was not captured live. */
  | 'unseen';

export interface Asker {
  /** Null: not in a container, or unknown. */
  readonly container: SeenContainer | null;
  /** The cgroup's path; empty: unknown. */
  readonly cgroup: string;
  /** The user who owns the socket; null: unknown. */
  readonly uid: number | null;
  /** The processes that hold the socket; several after a fork. If empty, see `why`. */
  readonly processes: readonly SeenProcess[];
  readonly why: WhyUnknown | null;
}

export function unknownAsker(why: WhyUnknown): Asker {
  return unknown[why];
}

const nobody = (why: WhyUnknown): Asker => ({
  container: null,
  cgroup: '',
  uid: null,
  processes: [],
  why,
});

const unknown: Readonly<Record<WhyUnknown, Asker>> = {
  closed: nobody('closed'),
  elsewhere: nobody('elsewhere'),
  several: nobody('several'),
  ended: nobody('ended'),
  refused: nobody('refused'),
  busy: nobody('busy'),
  unseen: nobody('unseen'),
};
