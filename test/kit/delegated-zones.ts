/**
 * The root, a zone under it and a zone under that one. Each is on a different loopback address, all at the same port.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { FLAG, TYPE } from '../../src/server/wire/iana.ts';
import {
  readMessage,
  writeMessage,
  type DnsRecord,
  type Question,
} from '../../src/server/wire/message.ts';

const record = (name: string, type: number, data: object): DnsRecord => ({
  name,
  type,
  class: 1,
  ttl: 60,
  data,
});
const a = (name: string, address: string): DnsRecord => record(name, TYPE.A, { address });
const ns = (name: string, target: string): DnsRecord => record(name, TYPE.NS, { target });
const soa = (name: string): DnsRecord =>
  record(name, TYPE.SOA, {
    mname: name,
    rname: name,
    serial: 1,
    refresh: 1,
    retry: 1,
    expire: 1,
    minimum: 1,
  });

interface Contents {
  readonly rcode?: number;
  readonly authoritative?: boolean;
  readonly answer?: readonly DnsRecord[];
  readonly authority?: readonly DnsRecord[];
  readonly additional?: readonly DnsRecord[];
}

type Speak = (question: Question) => Contents;

const root: Speak = ({ name, type }) => {
  if (name === '.' && type === TYPE.NS)
    return {
      authoritative: true,
      answer: [ns('.', 'a.root.')],
      additional: [a('a.root.', '127.0.0.1')],
    };
  // Without glue, the address has to be queried.
  if (name === 'ns.elsewhere.') return { answer: type === TYPE.A ? [a(name, '127.0.0.3')] : [] };
  if (!name.endsWith('test.')) return { rcode: 3, authoritative: true, authority: [soa('.')] };
  return { authority: [ns('test.', 'ns.test.')], additional: [a('ns.test.', '127.0.0.2')] };
};

const above: Speak = ({ name }) => {
  if (name.endsWith('loop.test.')) return { authority: [ns('test.', 'ns.test.')] };
  return { authority: [ns('example.test.', 'ns.elsewhere.')] };
};

const below: Speak = ({ name, type }) => {
  if (name === 'www.example.test.' && type === TYPE.A)
    return { authoritative: true, answer: [a(name, '203.0.113.80')] };
  if (name === 'www.example.test.')
    return { authoritative: true, authority: [soa('example.test.')] };
  return { rcode: 3, authoritative: true, authority: [soa('example.test.')] };
};

/** All servers use `port`. */
export interface DelegatedZones {
  readonly port: number;
  close(): void;
}

export async function serveDelegatedZones(): Promise<DelegatedZones> {
  const sockets: Socket[] = [];
  const serve = async (address: string, port: number, speak: Speak): Promise<number> => {
    const socket = createSocket('udp4');
    sockets.push(socket);
    socket.on('message', (bytes, from) => {
      const query = readMessage(bytes);
      const [question] = query.question;
      if (question === undefined) return;
      const contents = speak({ ...question, name: question.name.toLowerCase() });
      const flags =
        FLAG.QR | (contents.authoritative === true ? FLAG.AA : 0) | (query.flags & FLAG.RD);
      const { rcode = 0, answer = [], authority = [], additional = [] } = contents;
      const edns = query.edns === null ? null : { ...query.edns, options: [] };
      socket.send(
        writeMessage({
          id: query.id,
          flags,
          rcode,
          question: [question],
          answer,
          authority,
          additional,
          edns,
        }),
        from.port,
        from.address,
      );
    });
    socket.bind(port, address);
    await once(socket, 'listening');
    return socket.address().port;
  };
  const port = await serve('127.0.0.1', 0, root);
  await serve('127.0.0.2', port, above);
  await serve('127.0.0.3', port, below);
  return {
    port,
    close: () => {
      for (const socket of sockets) socket.close();
    },
  };
}
