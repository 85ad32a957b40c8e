/** Transfers whole zones over TCP as text that can be compared. */
import { connect } from 'node:net';
import { TYPE } from '../../../src/server/wire/iana.ts';
import { readMessage, writeMessage } from '../../../src/server/wire/message.ts';
import { printData } from '../../../src/server/wire/print.ts';

/** The timeout in milliseconds, which is longer than a transfer of any of these zones takes. */
const SILENCE_MS = 3000;

/**
 * Sends an AXFR query to HOST:PORT and returns either the response code or the records. They are sorted, except for the
 * two SOA records.
 */
export function transferOf(zone: string, port: number, host: string): Promise<string> {
  return new Promise((resolve) => {
    const records: string[] = [];
    let held = Buffer.alloc(0);
    const socket = connect({ port, host });
    const finish = (text: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(text);
    };
    const timer = setTimeout(() => finish('no end'), SILENCE_MS);
    socket.on('error', () => finish('closed'));
    socket.on('close', () => finish('closed'));
    socket.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
        const size = held.readUInt16BE(0);
        const { rcode, answer } = readMessage(held.subarray(2, 2 + size));
        held = held.subarray(2 + size);
        for (const { name, type, ttl, data } of answer)
          records.push(`${name.toLowerCase()} ${ttl} ${type} ${printData(type, data)}`);
        if (rcode !== 0 || answer.length === 0) finish(`rcode ${rcode}`);
        const ends = records.length > 1 && answer.at(-1)?.type === TYPE.SOA;
        if (ends)
          finish([records[0], ...records.slice(1, -1).toSorted(), records.at(-1)].join('\n'));
      }
    });
    const question = [{ name: zone, type: TYPE.AXFR, class: 1 }];
    const none = { answer: [], authority: [], additional: [], edns: null };
    const bytes = writeMessage({ ...none, id: 7, flags: 0, rcode: 0, question });
    socket.write(Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]));
  });
}
