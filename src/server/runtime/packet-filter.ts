/** A classic BPF filter for packet sockets that accepts DNS packets and errors about them. */

/** Instructions from <linux/bpf_common.h>. */
const OP = {
  LOAD_BYTE: 0x30,
  LOAD_HALF: 0x28,
  LOAD_HALF_AT_X: 0x48,
  HEADER_LENGTH_TO_X: 0xb1,
  BYTE_AT_X: 0x50,
  AND: 0x54,
  SHIFT_RIGHT: 0x74,
  EQUAL: 0x15,
  ANY_BIT: 0x45,
  RETURN: 0x06,
} as const;

/** Protocol numbers, and the IPv6 headers at which the filter stops parsing. */
const NEXT = { HOPS: 0, ICMP: 1, TCP: 6, UDP: 17, FRAGMENT: 44, ICMP6: 58 } as const;

/** TCP flags. */
const SYN = 2;
const ACK = 16;

/**
 * A label, or an instruction: its operation, its operand, and the jump targets for true and false (null: next line).
 */
type FilterLine =
  | string
  | readonly [op: number, value: number, yes?: string | null, no?: string | null];

/**
 * Builds the program in the kernel's format (struct sock_filter, 8 bytes per instruction) for sockets whose packets
 * begin with the IP header. Fragments and ICMP errors always pass.
 *
 * @param ports packets with one of these source or destination ports pass. At most 64, because a comparison can jump
 * over at most 255 instructions.
 * @param opened true to also pass packets that open a TCP connection (SYN without ACK) on any port
 */
export function dnsFilter(ports: readonly number[], opened = false): Uint8Array {
  const eitherPort = (load: number, source: number, leave: string): FilterLine[] => {
    const last = ports.length - 1;
    return [source, source + 2].flatMap((at, half): FilterLine[] => [
      [load, at],
      ...ports.map((port, index): FilterLine => [
        OP.EQUAL,
        port,
        `take ${leave}`,
        half === 1 && index === last ? leave : null,
      ]),
    ]);
  };
  const endings = (leave: string, protocolAt: number, flags: FilterLine): FilterLine[] => [
    leave,
    ...(opened
      ? ([
          [OP.LOAD_BYTE, protocolAt],
          [OP.EQUAL, NEXT.TCP, null, `drop ${leave}`],
          flags,
          [OP.AND, SYN | ACK],
          [OP.EQUAL, SYN, `take ${leave}`],
        ] satisfies FilterLine[])
      : []),
    `drop ${leave}`,
    [OP.RETURN, 0],
    `take ${leave}`,
    [OP.RETURN, 0x40000],
  ];
  return assemble([
    [OP.LOAD_BYTE, 0],
    [OP.SHIFT_RIGHT, 4],
    [OP.EQUAL, 4, null, 'not 4'],
    [OP.LOAD_BYTE, 9],
    [OP.EQUAL, NEXT.ICMP, 'take leave 4'],
    [OP.EQUAL, NEXT.TCP, 'ports 4'],
    [OP.EQUAL, NEXT.UDP, null, 'leave 4'],
    [OP.LOAD_HALF, 6],
    [OP.ANY_BIT, 0x1fff, 'take leave 4'],
    'ports 4',
    [OP.HEADER_LENGTH_TO_X, 0],
    ...eitherPort(OP.LOAD_HALF_AT_X, 0, 'leave 4'),
    ...endings('leave 4', 9, [OP.BYTE_AT_X, 13]),
    'not 4',
    [OP.EQUAL, 6, null, 'leave 6'],
    [OP.LOAD_BYTE, 6],
    [OP.EQUAL, NEXT.ICMP6, 'take leave 6'],
    [OP.EQUAL, NEXT.FRAGMENT, 'take leave 6'],
    [OP.EQUAL, NEXT.HOPS, 'take leave 6'],
    [OP.EQUAL, NEXT.TCP, 'ports 6'],
    [OP.EQUAL, NEXT.UDP, null, 'leave 6'],
    'ports 6',
    ...eitherPort(OP.LOAD_HALF, 40, 'leave 6'),
    ...endings('leave 6', 6, [OP.LOAD_BYTE, 40 + 13]),
  ]);
}

function assemble(lines: readonly FilterLine[]): Uint8Array {
  const labels = new Map<string, number>();
  const steps: Exclude<FilterLine, string>[] = [];
  for (const line of lines)
    if (typeof line === 'string') labels.set(line, steps.length);
    else steps.push(line);
  const out = new DataView(new ArrayBuffer(steps.length * 8));
  steps.forEach(([op, value, yes, no], index) => {
    const jump = (label: string | null | undefined): number =>
      label === null || label === undefined ? 0 : labels.get(label)! - index - 1;
    out.setUint16(index * 8, op, true);
    out.setUint8(index * 8 + 2, jump(yes));
    out.setUint8(index * 8 + 3, jump(no));
    out.setUint32(index * 8 + 4, value, true);
  });
  return new Uint8Array(out.buffer);
}
