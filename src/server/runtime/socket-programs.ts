/**
 * Programs in the kernel that note which process sends: for each query and each new connection a
 * record with the socket's cookie, addresses, process and cgroup. They hang on the root of cgroup
 * v2 and see only contexts that are part of the kernel's interface: no BTF, no kernel structures.
 *
 * `sock_create`, `connect` and `sendmsg` run in the process that calls, and note it under the cookie of its socket.
 * `egress` runs when the packet leaves, for TCP perhaps in no process at all, and reads there.
 */
import {
  add,
  and,
  assembleBpf,
  call,
  copy,
  exit,
  ifDiffers,
  ifEqual,
  jump,
  load,
  map,
  set,
  shiftLeft,
  shiftRight,
  store,
  storeValue,
  type BpfLine,
} from './bpf-assembler.ts';
import {
  ATTACH,
  BpfRefused,
  createMap,
  linkToCgroup,
  loadProgram,
  MAP_KIND,
  PROGRAM,
  type BpfObject,
} from './bpf.ts';
import { BpfRing } from './bpf-ring.ts';

/** Functions of the kernel (<linux/bpf.h>). */
const HELPER = {
  ...{ LOOK_UP: 1, UPDATE: 2, PROCESS: 14, COMMAND: 16, LOAD_BYTES: 26, COOKIE: 46 },
  ...{ CGROUP: 80, RING_OUTPUT: 130 },
} as const;
/** A reader polls when packets come: no reader has to be woken (BPF_RB_NO_WAKEUP). */
const NO_WAKEUP = 1;
/** Maximum number of sockets whose process is remembered; the least recently used are dropped first. */
const SOCKETS_MAX = 65_536;
/** Bytes that may wait for this process. */
const RING = 4 * 1024 * 1024;
const EINVAL = 22;

/** The note of a socket: process and thread, cgroup, name. */
const NOTE = { SIZE: 32, PROCESS: 0, CGROUP: 8, COMMAND: 16 };
/** A record in the ring. */
const RECORD = {
  ...{ SIZE: 104, COOKIE: 0, SENDER: 8, PROCESS: 16, CGROUP: 24, COMMAND: 32 },
  ...{ SOURCE: 48, TARGET: 64, PORTS: 80, ID: 84, PROTOCOL: 86, FAMILY: 87, HEAD: 88 },
};
/** The places of parts of struct bpf_sock_addr and struct bpf_sock. */
const ADDRESS = { PORT: 24, PROTOCOL: 36 };
const NEXT = { TCP: 6, UDP: 17 } as const;
const SYN = 2;
const ACK = 16;

/** One query, or one opened TCP connection, when it left. */
export interface SentRecord {
  readonly protocol: 'udp' | 'tcp';
  /** 4 or 16 bytes each, valid during the call. */
  readonly source: Uint8Array;
  readonly target: Uint8Array;
  readonly sourcePort: number;
  readonly targetPort: number;
  /** Of the DNS message; 0: of a connection. */
  readonly id: number;
  readonly cookie: bigint;
  /** Process that opened the socket or connected it last; 0: before the programs were there. */
  readonly pid: number;
  /** Process that sent the packet; 0: unknown to the kernel (before 6.10). */
  readonly senderPid: number;
  readonly cgroup: bigint;
  readonly command: string;
}

/** Notes the calling process under the cookie of the socket of the context in register 6. */
function noteProcess(notes: number): BpfLine[] {
  return [
    copy(1, 6),
    call(HELPER.COOKIE),
    store(8, 10, -8, 0),
    call(HELPER.PROCESS),
    store(8, 10, -8 - NOTE.SIZE + NOTE.PROCESS, 0),
    call(HELPER.CGROUP),
    store(8, 10, -8 - NOTE.SIZE + NOTE.CGROUP, 0),
    storeValue(8, 10, -8 - NOTE.SIZE + NOTE.COMMAND, 0),
    storeValue(8, 10, -8 - NOTE.SIZE + NOTE.COMMAND + 8, 0),
    copy(1, 10),
    add(1, -8 - NOTE.SIZE + NOTE.COMMAND),
    set(2, 16),
    call(HELPER.COMMAND),
    map(1, notes),
    copy(2, 10),
    add(2, -8),
    copy(3, 10),
    add(3, -8 - NOTE.SIZE),
    set(4, 0),
    call(HELPER.UPDATE),
  ];
}

const allow: readonly BpfLine[] = ['allow', set(0, 1), exit];

/** Ports as they are in a packet. */
function networkOrder(port: number): number {
  return ((port & 0xff) << 8) | (port >> 8);
}

function onCreated(notes: number): Uint8Array {
  return assembleBpf([copy(6, 1), ...noteProcess(notes), ...allow]);
}

/** `connect` by TCP to any port, and by UDP to these; `sendmsg` to these. */
function onAddress(notes: number, ports: readonly number[]): Uint8Array {
  return assembleBpf([
    copy(6, 1),
    load(4, 2, 6, ADDRESS.PROTOCOL),
    ifEqual(2, NEXT.TCP, 'note'),
    load(4, 2, 6, ADDRESS.PORT),
    ...ports.map((port) => ifEqual(2, networkOrder(port), 'note')),
    jump('allow'),
    'note',
    ...noteProcess(notes),
    ...allow,
  ]);
}

/** @param senders whether the kernel says which process a packet leaves in (6.10) */
function onEgress(
  notes: number,
  ring: number,
  ports: readonly number[],
  senders: boolean,
): Uint8Array {
  const at = (part: number): number => part - RECORD.SIZE;
  /** Loads bytes of the packet: `from` is in register 2 already. */
  const bytes = (to: number, length: number): BpfLine[] => [
    copy(1, 6),
    copy(3, 10),
    add(3, at(to)),
    set(4, length),
    call(HELPER.LOAD_BYTES),
    ifDiffers(0, 0, 'allow'),
  ];
  const zero = Array.from({ length: RECORD.SIZE / 8 }, (_, i) => storeValue(8, 10, at(i * 8), 0));
  return assembleBpf([
    copy(6, 1),
    ...zero,
    // The first bytes: version, length of the header, and for IPv4 fragment and protocol.
    set(2, 0),
    ...bytes(RECORD.HEAD, 12),
    load(1, 7, 10, at(RECORD.HEAD)),
    copy(8, 7),
    shiftRight(8, 4),
    store(1, 10, at(RECORD.FAMILY), 8),
    ifEqual(8, 6, 'six'),
    ifDiffers(8, 4, 'allow'),
    and(7, 15),
    shiftLeft(7, 2),
    load(2, 8, 10, at(RECORD.HEAD + 6)),
    and(8, 0xff1f),
    ifDiffers(8, 0, 'allow'),
    load(1, 8, 10, at(RECORD.HEAD + 9)),
    // Register 8 is the protocol from here on, and 7 where its header begins.
    ...[ifEqual(8, NEXT.UDP, 'four'), ifDiffers(8, NEXT.TCP, 'allow')],
    'four',
    ...[set(2, 12), ...bytes(RECORD.SOURCE, 4), set(2, 16), ...bytes(RECORD.TARGET, 4)],
    jump('ports'),
    'six',
    load(1, 8, 10, at(RECORD.HEAD + 6)),
    set(7, 40),
    ...[ifEqual(8, NEXT.UDP, 'addresses'), ifDiffers(8, NEXT.TCP, 'allow')],
    'addresses',
    ...[set(2, 8), ...bytes(RECORD.SOURCE, 16), set(2, 24), ...bytes(RECORD.TARGET, 16)],
    'ports',
    store(1, 10, at(RECORD.PROTOCOL), 8),
    ...[copy(2, 7), ...bytes(RECORD.PORTS, 4)],
    ifEqual(8, NEXT.TCP, 'connection'),
    load(2, 9, 10, at(RECORD.PORTS + 2)),
    ...ports.map((port) => ifEqual(9, networkOrder(port), 'query')),
    jump('allow'),
    'query',
    ...[copy(2, 7), add(2, 8), ...bytes(RECORD.ID, 2)],
    jump('record'),
    'connection',
    ...[copy(2, 7), add(2, 13), ...bytes(RECORD.HEAD, 1)],
    load(1, 9, 10, at(RECORD.HEAD)),
    and(9, SYN | ACK),
    ifDiffers(9, SYN, 'allow'),
    'record',
    storeValue(8, 10, at(RECORD.HEAD), 0),
    storeValue(8, 10, at(RECORD.HEAD + 8), 0),
    copy(1, 6),
    call(HELPER.COOKIE),
    store(8, 10, at(RECORD.COOKIE), 0),
    ...(senders ? [call(HELPER.PROCESS), store(8, 10, at(RECORD.SENDER), 0)] : []),
    map(1, notes),
    ...[copy(2, 10), add(2, at(RECORD.COOKIE)), call(HELPER.LOOK_UP)],
    ifEqual(0, 0, 'write'),
    ...[0, 8, 16, 24].flatMap((part) => [
      load(8, 1, 0, part),
      store(8, 10, at(RECORD.PROCESS + part), 1),
    ]),
    'write',
    map(1, ring),
    ...[copy(2, 10), add(2, at(0)), set(3, RECORD.SIZE), set(4, NO_WAKEUP)],
    call(HELPER.RING_OUTPUT),
    ...allow,
  ]);
}

/** The programs while they are attached. Its owner closes it; the end of the process does, too. */
export class SocketPrograms {
  readonly #ring: BpfRing;
  readonly #objects: BpfObject[] = [];
  /** True if the kernel reports the process of a leaving packet. */
  readonly senders: boolean;

  /**
   * @param cgroup directory of cgroup v2: processes in it and below it are seen
   * @param ports to which queries go
   * @throws BpfRefused, LibcMissing, or the error of opening the directory
   */
  constructor(cgroup: string, ports: readonly number[]) {
    this.#ring = new BpfRing(RING);
    try {
      const notes = createMap(MAP_KIND.LRU_HASH, {
        key: 8,
        value: NOTE.SIZE,
        entries: SOCKETS_MAX,
      });
      this.#objects.push(notes);
      const attach = (kind: number, place: number, code: Uint8Array): void => {
        const program = loadProgram(kind, place, code);
        this.#objects.push(program);
        this.#objects.push(linkToCgroup(program, cgroup, place));
      };
      attach(PROGRAM.CGROUP_SOCK, ATTACH.SOCKET_CREATED, onCreated(notes.fd));
      for (const place of [ATTACH.CONNECT_4, ATTACH.CONNECT_6, ATTACH.SEND_4, ATTACH.SEND_6])
        attach(PROGRAM.CGROUP_ADDRESS, place, onAddress(notes.fd, ports));
      const egress = (senders: boolean): void =>
        attach(
          PROGRAM.CGROUP_SKB,
          ATTACH.EGRESS,
          onEgress(notes.fd, this.#ring.map.fd, ports, senders),
        );
      this.senders = tried(() => egress(true));
      if (!this.senders) egress(false);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Gives each record that was written since the last call. */
  drain(take: (record: SentRecord) => void): void {
    this.#ring.drain((bytes, at, length) => {
      if (length === RECORD.SIZE) take(readRecord(bytes, at));
    });
  }

  close(): void {
    for (const each of this.#objects.toReversed()) each.close();
    this.#ring.close();
  }
}

/** @returns false: the verifier does not know a function that is called */
function tried(action: () => void): boolean {
  try {
    action();
    return true;
  } catch (error) {
    if (error instanceof BpfRefused && error.errno === EINVAL) return false;
    throw error;
  }
}

function readRecord(bytes: Uint8Array, at: number): SentRecord {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, RECORD.SIZE);
  const size = bytes[at + RECORD.FAMILY] === 4 ? 4 : 16;
  const part = (from: number, length: number): Uint8Array =>
    bytes.subarray(at + from, at + from + length);
  const name = Buffer.from(part(RECORD.COMMAND, 16)).toString('latin1');
  return {
    protocol: bytes[at + RECORD.PROTOCOL] === NEXT.UDP ? 'udp' : 'tcp',
    source: part(RECORD.SOURCE, size),
    target: part(RECORD.TARGET, size),
    sourcePort: view.getUint16(RECORD.PORTS),
    targetPort: view.getUint16(RECORD.PORTS + 2),
    id: view.getUint16(RECORD.ID),
    cookie: view.getBigUint64(RECORD.COOKIE, true),
    pid: view.getUint32(RECORD.PROCESS + 4, true),
    senderPid: view.getUint32(RECORD.SENDER + 4, true),
    cgroup: view.getBigUint64(RECORD.CGROUP, true),
    command: name.replace(/\0.*/s, ''),
  };
}
