/**
 * Kernel programs that record which process sends. For each query and each new connection, a record holds the socket's
 * cookie, addresses, process and cgroup. The programs are attached to the cgroup v2 root and use only stable kernel
 * interfaces: no BTF, no kernel structures.
 *
 * `sock_create`, `connect` and `sendmsg` run in the calling process, and record it under its socket's cookie. `egress`
 * runs when the packet is sent, for TCP possibly outside any process, and looks up that record.
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
} from './bpf.ts';
import type { Descriptor } from './descriptor.ts';
import { BpfRing } from './bpf-ring.ts';

/** Kernel helper functions (<linux/bpf.h>). */
const HELPER = {
  ...{ LOOK_UP: 1, UPDATE: 2, PROCESS: 14, COMMAND: 16, LOAD_BYTES: 26, COOKIE: 46 },
  ...{ CGROUP: 80, BOOT_TIME: 125, RING_OUTPUT: 130 },
} as const;
/** The reader polls when packets arrive, so it need not be woken (BPF_RB_NO_WAKEUP). */
const NO_WAKEUP = 1;
/** Number of sockets whose process is remembered; the least recently used are evicted first. */
const SOCKETS_MAX = 65_536;
/** Ring size in bytes. */
const RING = 4 * 1024 * 1024;
const EINVAL = 22;

/** The data stored per socket: process and thread, cgroup, name, time. */
const NOTE = { SIZE: 40, PROCESS: 0, CGROUP: 8, COMMAND: 16, TIME: 32 };
/** A record in the ring. */
const RECORD = {
  ...{ SIZE: 104, COOKIE: 0, SENDER: 8, PROCESS: 16, CGROUP: 24, COMMAND: 32 },
  ...{ SOURCE: 48, TARGET: 64, PORTS: 80, ID: 84, PROTOCOL: 86, FAMILY: 87 },
  /** The packet's first bytes while it is read, and then both times. */
  ...{ HEAD: 88, SENT: 88, NOTED: 96 },
};
/** Field offsets in struct bpf_sock_addr and struct bpf_sock. */
const ADDRESS = { PORT: 24, PROTOCOL: 36 };
const NEXT = { TCP: 6, UDP: 17 } as const;
const SYN = 2;
const ACK = 16;

/** A query, or the opening of a TCP connection, at the time it was sent. */
export interface SentRecord {
  readonly protocol: 'udp' | 'tcp';
  /** Contains both addresses, which are 4 or 16 bytes each. */
  readonly bytes: Uint8Array;
  readonly sourceAt: number;
  readonly targetAt: number;
  readonly addressSize: 4 | 16;
  readonly sourcePort: number;
  readonly targetPort: number;
  /** DNS message id; 0 for a connection. */
  readonly id: number;
  /** The halves of a 64-bit number. */
  readonly cookieHigh: number;
  readonly cookieLow: number;
  /** The process that opened or last connected the socket; 0 if that was before the programs were attached. */
  readonly pid: number;
  /** The process that sent the packet; 0 if the kernel cannot report it (before 6.10). */
  readonly senderPid: number;
  /** The time at which the packet was sent, in milliseconds since boot. */
  readonly sentBootMs: number;
  /** The time at which `pid` opened or connected the socket, in milliseconds since boot; 0 if `pid` is 0. */
  readonly notedBootMs: number;
  readonly cgroup: bigint;
  readonly command: string;
}

/** Records the calling process under the cookie of the context's socket; register 6 holds the context. */
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
    call(HELPER.BOOT_TIME),
    store(8, 10, -8 - NOTE.SIZE + NOTE.TIME, 0),
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

/** Converts a port to network byte order. */
function networkOrder(port: number): number {
  return ((port & 0xff) << 8) | (port >> 8);
}

function onCreated(notes: number): Uint8Array {
  return assembleBpf([copy(6, 1), ...noteProcess(notes), ...allow]);
}

/** Handles `connect` by TCP to any port or by UDP to these ports, and `sendmsg` to these ports. */
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

/** @param senders true if the kernel reports which process sends a packet (6.10) */
function onEgress(
  notes: number,
  ring: number,
  ports: readonly number[],
  senders: boolean,
): Uint8Array {
  const at = (part: number): number => part - RECORD.SIZE;
  /** Loads bytes of the packet; `from` is already in register 2. */
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
    // The first bytes: version, header length, and for IPv4 the fragment and protocol fields.
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
    // From here on, register 8 holds the protocol, and 7 the offset of its header.
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
    ...[call(HELPER.BOOT_TIME), store(8, 10, at(RECORD.SENT), 0)],
    storeValue(8, 10, at(RECORD.NOTED), 0),
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
    ...[load(8, 1, 0, NOTE.TIME), store(8, 10, at(RECORD.NOTED), 1)],
    'write',
    map(1, ring),
    ...[copy(2, 10), add(2, at(0)), set(3, RECORD.SIZE), set(4, NO_WAKEUP)],
    call(HELPER.RING_OUTPUT),
    ...allow,
  ]);
}

/** The attached programs. The owner must close it; the end of the process does so as well. */
export class SocketPrograms {
  readonly #ring: BpfRing;
  readonly #objects: Descriptor[] = [];
  readonly #record = new RingRecord();
  #take: (record: SentRecord) => void = () => undefined;
  /** True if the kernel reports the process that sends a packet. */
  readonly senders: boolean;

  /**
   * @param cgroup cgroup v2 directory; processes in it and in its descendants are seen
   * @param ports destination ports of queries
   * @throws BpfRefused, LibcMissing, or the error from opening the directory
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

  /** Passes on each record written since the last call. Records are valid only during the call. */
  drain(take: (record: SentRecord) => void): void {
    this.#take = take;
    this.#ring.drain(this.#read);
  }

  readonly #read = (bytes: Uint8Array, at: number, length: number): void => {
    if (length !== RECORD.SIZE) return;
    this.#record.moveTo(bytes, at);
    this.#take(this.#record);
  };

  close(): void {
    for (const each of this.#objects.toReversed()) each.close();
    this.#ring.close();
  }
}

/** @returns false if the verifier does not know one of the called functions */
function tried(action: () => void): boolean {
  try {
    action();
    return true;
  } catch (error) {
    if (error instanceof BpfRefused && error.errno === EINVAL) return false;
    throw error;
  }
}

/** A record in the ring. One object serves all records, because there may be tens of thousands per second. */
class RingRecord implements SentRecord {
  protocol: 'udp' | 'tcp' = 'udp';
  bytes: Uint8Array = new Uint8Array();
  sourceAt = 0;
  targetAt = 0;
  addressSize: 4 | 16 = 4;
  sourcePort = 0;
  targetPort = 0;
  id = 0;
  cookieHigh = 0;
  cookieLow = 0;
  pid = 0;
  senderPid = 0;
  sentBootMs = 0;
  notedBootMs = 0;
  #view = new DataView<ArrayBufferLike>(new ArrayBuffer());
  #at = 0;

  moveTo(bytes: Uint8Array, at: number): void {
    if (bytes !== this.bytes) {
      this.bytes = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    }
    const view = this.#view;
    this.#at = at;
    this.protocol = bytes[at + RECORD.PROTOCOL] === NEXT.UDP ? 'udp' : 'tcp';
    this.sourceAt = at + RECORD.SOURCE;
    this.targetAt = at + RECORD.TARGET;
    this.addressSize = bytes[at + RECORD.FAMILY] === 4 ? 4 : 16;
    this.sourcePort = view.getUint16(at + RECORD.PORTS);
    this.targetPort = view.getUint16(at + RECORD.PORTS + 2);
    this.id = view.getUint16(at + RECORD.ID);
    this.cookieLow = view.getUint32(at + RECORD.COOKIE, true);
    this.cookieHigh = view.getUint32(at + RECORD.COOKIE + 4, true);
    this.pid = view.getUint32(at + RECORD.PROCESS + 4, true);
    this.senderPid = view.getUint32(at + RECORD.SENDER + 4, true);
    this.sentBootMs = millisecondsAt(view, at + RECORD.SENT);
    this.notedBootMs = millisecondsAt(view, at + RECORD.NOTED);
  }

  get cgroup(): bigint {
    return this.#view.getBigUint64(this.#at + RECORD.CGROUP, true);
  }

  get command(): string {
    const at = this.#at + RECORD.COMMAND;
    const name = Buffer.from(this.bytes.subarray(at, at + 16)).toString('latin1');
    return name.replace(/\0.*/s, '');
  }
}

/** Reads nanoseconds as milliseconds, without a bigint for each record. */
function millisecondsAt(view: DataView, at: number): number {
  return (view.getUint32(at, true) + view.getUint32(at + 4, true) * 0x1_0000_0000) / 1e6;
}
