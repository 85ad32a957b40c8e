/** Who holds one end of an exchange: container and process, or why that is not known. */

/** A container, as the path of its cgroup names it. */
export interface SeenContainer {
  /** 64 hexadecimal digits. */
  readonly id: string;
  /** `containerd`, `cri-o`, `docker`, `podman`; empty where the path does not say. */
  readonly runtime: string;
  /** UID of its pod, as the API server has it; empty outside of Kubernetes. */
  readonly podUid: string;
}

export interface SeenProcess {
  readonly pid: number;
  /** Its number in its own PID namespace; absent where that is the same. */
  readonly innerPid?: number;
  /** Its name of at most 15 characters. */
  readonly command: string;
  /** Program and arguments, shortened; empty where the process has none. */
  readonly commandLine: string;
  readonly parent: { readonly pid: number; readonly command: string } | null;
}

/** Why a process is not known. Nothing is guessed. */
export type WhyUnknown =
  /** The socket was closed before it was looked up, or may have been: the reply was there first. */
  | 'closed'
  /** No network namespace of this machine has the address. */
  | 'elsewhere'
  /** Several namespaces have the address. */
  | 'several'
  /** The process ended, or passed the socket on, before its files were read. */
  | 'ended'
  /** Files of processes may not be read, or the namespace may not be entered. */
  | 'refused'
  /** Too many new sockets: their processes were not searched for. */
  | 'busy'
  /** The query was not looked up: it was not seen live. */
  | 'unseen';

/** Who asked, or who answered. */
export interface Asker {
  /** Null: in none, or not known. */
  readonly container: SeenContainer | null;
  /** Path of the cgroup; empty: not known. */
  readonly cgroup: string;
  /** User of the socket; null: not known. */
  readonly uid: number | null;
  /** Processes that hold the socket: several after a fork; none: `why`. */
  readonly processes: readonly SeenProcess[];
  readonly why: WhyUnknown | null;
}

/** Somebody of whom nothing is known. */
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
