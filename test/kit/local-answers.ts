/** A DNS server on 127.0.0.1 for CLI tests. It answers from an answers file, over both UDP and TCP on the same port. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { replyBytes } from '../../src/tools/resolver/reply-bytes.ts';
import { answerBySpec } from '../../src/tools/resolver/answer-spec.ts';
import {
  nextAnswer,
  parseAnswers,
  type RuleCounts,
} from '../../src/tools/resolver/answers-file.ts';
import type { SocketKind } from '../../src/server/wire/transports.ts';
import { typeName } from '../../src/server/wire/iana.ts';
import { readMessage } from '../../src/server/wire/message.ts';
import { freePorts } from './free-ports.ts';

export interface LocalAnswers {
  readonly port: number;
  /** The queries in order of arrival, e.g. `udp www.example.com. A`. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** @param file a parsed answers file */
export async function serveAnswers(file: object): Promise<LocalAnswers> {
  const script = parseAnswers(file, 'test');
  const counts: RuleCounts = new Map();
  const asked: string[] = [];
  const answer = (bytes: Uint8Array, protocol: SocketKind): Buffer | null => {
    const { id, question, edns } = readMessage(bytes);
    const [first] = question;
    if (first === undefined) return null;
    const { name } = first;
    const type = typeName(first.type);
    asked.push(`${protocol} ${name} ${type}`);
    const size = edns === null ? null : { size: edns.udpSize, cookie: false };
    const query = { id, name, type, edns: size, ad: false, why: '' };
    const reply = answerBySpec(
      nextAnswer(script, counts, '127.0.0.1', name, type),
      query,
      protocol,
    );
    return reply === null ? null : Buffer.from(replyBytes(reply));
  };
  const connections = new Set<Socket>();
  const tcp = createServer((connection) => {
    connections.add(connection);
    connection.on('error', () => {});
    let pending = Buffer.alloc(0);
    connection.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const end = 2 + pending.readUInt16BE(0);
        const reply = answer(pending.subarray(2, end), 'tcp');
        pending = pending.subarray(end);
        if (reply === null) continue;
        connection.write(
          Buffer.concat([Buffer.from([reply.length >> 8, reply.length & 255]), reply]),
        );
      }
    });
  });
  const [port] = await freePorts(1);
  tcp.listen(port, '127.0.0.1');
  await once(tcp, 'listening');
  const udp = createSocket('udp4');
  udp.on('message', (bytes, from) => {
    const reply = answer(bytes, 'udp');
    if (reply !== null) udp.send(reply, from.port, from.address);
  });
  udp.bind(port, '127.0.0.1');
  await once(udp, 'listening');
  return {
    port,
    asked,
    close: async () => {
      for (const connection of connections) connection.destroy();
      udp.close();
      tcp.close();
      await once(tcp, 'close');
    },
  };
}
