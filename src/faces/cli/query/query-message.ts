/** Builds a query message and decodes its reply. */
import { Problem } from '../../../server/base/problem.ts';
import { secureRandom } from '../../../server/base/random.ts';
import { FLAG, TYPE } from '../../../server/wire/iana.ts';
import {
  readMessage,
  writeMessage,
  type DnsRecord,
  type Message,
} from '../../../server/wire/message.ts';
import type { QueryOptions } from './query-draft.ts';

/** @throws Problem if the name is invalid */
export function buildQuery(options: QueryOptions): Uint8Array {
  const name = options.name.endsWith('.') ? options.name : `${options.name}.`;
  const flags =
    ((options.opcode << 11) & FLAG.OPCODE) |
    (options.recursion ? FLAG.RD : 0) |
    (options.authenticData ? FLAG.AD : 0) |
    (options.checkingDisabled ? FLAG.CD : 0);
  // As in dig, size 0 disables EDNS unless another option requires it.
  const wanted = options.dnssec || options.ednsVersion > 0 || options.ednsOptions.length > 0;
  const size = options.bufferSize || (wanted ? 1232 : null);
  try {
    return writeMessage({
      // Over HTTPS, the id is 0 so that HTTP caches can be used (RFC 8484, section 4.1).
      id: options.transport === 'https' ? 0 : secureRandom.integer(0x10000),
      flags,
      rcode: 0,
      question: [{ name, type: options.type, class: options.class }],
      answer: [],
      authority: options.serial === null ? [] : [startOf(name, options.serial)],
      additional: [],
      edns:
        size === null
          ? null
          : {
              udpSize: size,
              version: options.ednsVersion,
              dnssecOk: options.dnssec,
              options: options.ednsOptions,
            },
    });
  } catch (error) {
    throw new Problem({
      code: 'usage',
      text: `"${options.name}" is not a domain name: ${String((error as Error).message)}`,
      cause: error,
    });
  }
}

/** The SOA record in an IXFR query (RFC 1995, section 3). */
function startOf(name: string, serial: number): DnsRecord {
  const data = { mname: '.', rname: '.', serial, refresh: 0, retry: 0, expire: 0, minimum: 0 };
  return { name, type: TYPE.SOA, class: 1, ttl: 0, data };
}

/** @throws Problem if the bytes are not a DNS message */
export function readReply(bytes: Uint8Array, server: string): Message {
  try {
    return readMessage(bytes);
  } catch (error) {
    throw new Problem({
      code: 'bad-reply',
      text: `${server} sent something that is not a DNS message: ${String((error as Error).message)}`,
      cause: error,
    });
  }
}
