/** The owner of one end of an exchange: container and process, or why it is unknown. */

export interface SeenContainer {
  /** 64 hexadecimal digits. */
  readonly id: string;
  /** `containerd`, `cri-o`, `docker`, `podman`; empty where the path does not say. */
  readonly runtime: string;
  /** UID of its pod in the API server; empty outside of Kubernetes. */
  readonly podUid: string;
}

export interface SeenProcess {
  readonly pid: number;
  /** Its PID in its own namespace; absent if equal. */
  readonly innerPid?: number;
  /** At most 15 characters. */
  readonly command: string;
  /** Program and arguments, shortened; empty for a kernel thread. */
  readonly commandLine: string;
  readonly parent: { readonly pid: number; readonly command: string } | null;
}

/** Why a process is unknown. ndots does not guess. */
export type WhyUnknown =
  /** The socket was closed before it was looked up, or may have been, because the reply had already arrived. */
  | 'closed'
  /** No network namespace of this machine has the address. */
  | 'elsewhere'
  /** Several namespaces have the address. */
  | 'several'
  /** The process ended, or passed the socket on, before its files were read. */
  | 'ended'
  /** Files of processes may not be read, or the namespace may not be entered. */
  | 'refused'
  /** Too many new sockets: the search for their processes was skipped. */
  | 'busy'
  /** The query was not captured live. */
  | 'unseen';

export interface Asker {
  /** Null: not in a container, or unknown. */
  readonly container: SeenContainer | null;
  /** Path of the cgroup; empty: unknown. */
  readonly cgroup: string;
  /** User of the socket; null: unknown. */
  readonly uid: number | null;
  /** Processes that hold the socket, several after a fork. Empty: see `why`. */
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
