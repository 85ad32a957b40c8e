import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { queryBytes, StreamClient, UdpClient } from '../kit/loopback.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

describe('a server with a low limit on open files', () => {
  test('answers probes, UDP and new connections while hundreds of idle connections come', async (t) => {
    const [health] = await freePorts(1);
    const directives = `  health 127.0.0.1:${health}\n  hosts {\n    10.1.2.3 a.test\n  }`;
    const server = await serveProcess(directives, { descriptors: 96 });
    t.after(() => server.stop());
    const sockets: Socket[] = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    for (let i = 0; i < 300; i++) {
      const socket = connect(server.port, '127.0.0.1');
      socket.on('error', () => undefined);
      sockets.push(socket);
      if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    for (let i = 0; i < 3; i++) {
      assert.equal((await fetch(`http://127.0.0.1:${health}/health`)).status, 200);
    }
    const udp = await UdpClient.open();
    t.after(() => udp.close());
    udp.send(queryBytes('a.test', 5), server.port);
    assert.equal((await udp.next(3000))?.bytes.readUInt16BE(6), 1);
    const stream = await StreamClient.open(server.port);
    stream.send(queryBytes('a.test', 6));
    assert.equal((await stream.next())?.readUInt16BE(6), 1);
    stream.close();
    assert.match(server.child.output(), /\[WARNING\] this process may open 96 descriptors/);
  });
});
