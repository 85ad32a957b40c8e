/** The syntax of a `dnstap` line. */
import { position, type Position } from '../../corefile/positions.ts';
import { hostPort, integer, Wrong } from '../../corefile/word-values.ts';
import type { DirectiveLine } from '../../corefile/line.ts';

export interface DnstapEndpoint {
  readonly listen: boolean;
  readonly kind: 'unix' | 'tcp' | 'tls';
  /** Used for unix. */
  readonly path: string;
  /** Used for all others. */
  readonly host: string;
  readonly port: number;
  readonly text: string;
  readonly full: boolean;
  /** Maximum amount of data waiting to be written to a connection, in MiB. */
  readonly writeBuffer: number;
  /** Maximum number of messages waiting in each worker, in tens of thousands. */
  readonly queue: number;
}

export const endpoint: Position<DnstapEndpoint> = position(
  '[listen] SOCKET [full] [WRITEBUFFER] [QUEUE]',
  '`SOCKET` is the path, `unix://PATH`, `tcp://HOST:PORT` or `tls://HOST:PORT` to connect to or, with `listen`, to accept connections on; `full` adds the DNS messages; `WRITEBUFFER` is the maximum backlog per connection in MiB, 1 to 1024; `QUEUE` is the maximum number of waiting messages per worker, in units of ten thousand (2 MiB each), 1 to 4096, but at most 256 MiB',
  (line) => {
    const listen = line.peek()?.text === 'listen';
    if (listen) line.take();
    if (listen && line.left === 0) line.refuse('dnstap listen requires an endpoint argument');
    const socket = line.take();
    const full = line.left > 0 && isFull(line);
    const writeBuffer =
      line.left > 0 ? multiple(line, 'MultipleTcpWriteBuf', 1024, 'MiB units') : 1;
    const queue = line.left > 0 ? multiple(line, 'MultipleQueue', 4096, 'x10k messages') : 1;
    const rest = { listen, full, writeBuffer, queue, text: socket.text };
    const found = /^(tcp|tls):\/\/(.*)$/.exec(socket.text);
    if (found === null) {
      const path = socket.text.replace(/^unix:\/\//, '');
      return { ...rest, kind: 'unix', path, host: '', port: 0 };
    }
    const address = hostPort('HOST:PORT').read({ ...socket, text: found[2]!.replace(/\/$/, '') });
    if (address instanceof Wrong) return line.refuse(address.text, socket.place);
    return { ...rest, kind: found[1] as 'tcp' | 'tls', path: '', ...address };
  },
);

function isFull(line: DirectiveLine): boolean {
  const { text, place } = line.take();
  if (text === 'full') return true;
  line.binding.warning(place, `messages are not sent: '${text}' is not 'full'`, {
    hint: 'After the socket, write full in lower case and two numbers; identity, version and extra are properties in { }.',
  });
  return false;
}

function multiple(line: DirectiveLine, name: string, most: number, unit: string): number {
  const found = line.take();
  const number = integer(name).read(found);
  const given = JSON.stringify(found.text);
  if (number instanceof Wrong)
    return line.refuse(`dnstap: invalid ${name} ${given}: ${number.text}`, found.place, {
      hint: 'Only full and two numbers may follow the socket; identity, version and extra are properties in { }.',
    });
  if (number >= 1 && number <= most) return number;
  const range = `between 1 and ${most} (${unit}): ${number}`;
  return line.refuse(`dnstap: ${name} must be ${range}`, found.place);
}
