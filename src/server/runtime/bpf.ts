/** Wraps bpf(2): maps, programs, and links that attach programs to a cgroup until this process ends. */
import { closeSync, openSync } from 'node:fs';
import { Descriptor } from './descriptor.ts';
import { libc, SystemError } from './libc.ts';
import { Memory } from './memory.ts';

/** System call number. */
const CALL = process.arch === 'arm64' ? 280 : 321;
const COMMAND = { CREATE_MAP: 0, LOAD: 5, CREATE_LINK: 28 } as const;
/** Number of bytes of union bpf_attr used here. */
const ATTRIBUTES = 128;
/** Field offsets, in 32-bit words. */
const OF_MAP = { TYPE: 0, KEY: 1, VALUE: 2, ENTRIES: 3, NAME: 7 };
const OF_PROGRAM = {
  ...{ TYPE: 0, COUNT: 1, INSTRUCTIONS: 2, LICENCE: 4 },
  ...{ LOG_LEVEL: 6, LOG_SIZE: 7, LOG: 8, NAME: 12, ATTACH: 17 },
};
const OF_LINK = { PROGRAM: 0, TARGET: 1, ATTACH: 2 };
/** Buffer size for the verifier's report on a rejected program. */
const LOG_SIZE = 64 * 1024;
/** The program's licence. The helpers it calls are available under any licence. */
const LICENCE = 'Apache-2.0\0';

/** Map types (<linux/bpf.h>). */
export const MAP_KIND = { LRU_HASH: 9, RING: 27 } as const;
/** Program types. */
export const PROGRAM = { CGROUP_SKB: 8, CGROUP_SOCK: 9, CGROUP_ADDRESS: 18 } as const;
/** Attach points (enum bpf_attach_type). */
export const ATTACH = {
  EGRESS: 1,
  SOCKET_CREATED: 2,
  CONNECT_4: 10,
  CONNECT_6: 11,
  SEND_4: 14,
  SEND_6: 15,
} as const;

/** A rejection by the kernel, including the end of the verifier's log if there is one. */
export class BpfRefused extends SystemError {
  readonly verdict: string;

  constructor(call: string, errno: number, verdict = '') {
    super(call, errno);
    this.verdict = verdict;
  }
}

/** @param entries for a ring, its size in bytes: a power of two and a multiple of the page size */
export function createMap(
  kind: number,
  { key, value, entries }: { key: number; value: number; entries: number },
): Descriptor {
  return withAttributes((attributes) => {
    const { words } = attributes;
    words[OF_MAP.TYPE] = kind;
    words[OF_MAP.KEY] = key;
    words[OF_MAP.VALUE] = value;
    words[OF_MAP.ENTRIES] = entries;
    name(attributes, OF_MAP.NAME);
    return new Descriptor(perform('bpf map', COMMAND.CREATE_MAP, attributes), 'bpf map');
  });
}

/** @throws BpfRefused */
export function loadProgram(kind: number, attach: number, instructions: Uint8Array): Descriptor {
  const log = new Memory(LOG_SIZE, false);
  const code = new Memory(instructions.length);
  const licence = new Memory(16);
  try {
    return withAttributes((attributes) => {
      const { words } = attributes;
      code.bytes.set(instructions);
      licence.bytes.set(Buffer.from(LICENCE));
      words[OF_PROGRAM.TYPE] = kind;
      words[OF_PROGRAM.COUNT] = instructions.length / 8;
      attributes.setPointer(OF_PROGRAM.INSTRUCTIONS, code.address);
      attributes.setPointer(OF_PROGRAM.LICENCE, licence.address);
      name(attributes, OF_PROGRAM.NAME);
      words[OF_PROGRAM.ATTACH] = attach;
      try {
        return new Descriptor(perform('bpf program', COMMAND.LOAD, attributes), 'bpf program');
      } catch (error) {
        // Load it again with the verifier's log enabled, which is slow.
        words[OF_PROGRAM.LOG_LEVEL] = 1;
        words[OF_PROGRAM.LOG_SIZE] = LOG_SIZE;
        attributes.setPointer(OF_PROGRAM.LOG, log.address);
        log.bytes[0] = 0;
        try {
          return new Descriptor(perform('bpf program', COMMAND.LOAD, attributes), 'bpf program');
        } catch {
          const text = Buffer.from(log.bytes.subarray(0, log.bytes.indexOf(0))).toString('latin1');
          const lines = text.trim().split('\n');
          const verdict = lines.filter((line) => !line.startsWith('processed ')).at(-1) ?? '';
          throw new BpfRefused('bpf program', (error as SystemError).errno, verdict);
        }
      }
    });
  } finally {
    for (const memory of [log, code, licence]) memory.free();
  }
}

/** Attaches a program to a cgroup and its descendants until the returned link is closed. */
export function linkToCgroup(program: Descriptor, cgroup: string, attach: number): Descriptor {
  const target = openSync(cgroup, 'r');
  try {
    return withAttributes((attributes) => {
      const { words } = attributes;
      words[OF_LINK.PROGRAM] = program.fd;
      words[OF_LINK.TARGET] = target;
      words[OF_LINK.ATTACH] = attach;
      return new Descriptor(perform('bpf link', COMMAND.CREATE_LINK, attributes), 'bpf link');
    });
  } finally {
    closeSync(target);
  }
}

function withAttributes<T>(use: (attributes: Memory) => T): T {
  const attributes = new Memory(ATTRIBUTES);
  try {
    return use(attributes);
  } finally {
    attributes.free();
  }
}

/** Sets the name that `bpftool` shows for this program's objects. */
function name({ bytes }: Memory, word: number): void {
  bytes.set(Buffer.from('ndots'), word * 4);
}

function perform(call: string, command: number, attributes: Memory): number {
  const result = libc().syscall(CALL, command, attributes.address, ATTRIBUTES);
  if (result < 0) throw new BpfRefused(call, libc().errno());
  return result;
}
