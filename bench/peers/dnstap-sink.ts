/** A dnstap collector at a given path. It is a separate process, because dnsperf blocks the benchmark's process. */
import { createServer } from 'node:net';
import { DNSTAP_CONTENT_TYPE } from '../../src/server/wire/dnstap.ts';
import { CONTROL, FrameReader, writeControl } from '../../src/server/wire/frame-stream.ts';

createServer((socket) => {
  const frames = new FrameReader(1 << 20);
  socket.on('error', () => undefined);
  socket.on('data', (bytes: Buffer) => {
    frames.push(bytes);
    for (let frame = frames.next(); frame !== null; frame = frames.next())
      if (!(frame instanceof Uint8Array) && frame.type === CONTROL.READY)
        socket.write(writeControl(CONTROL.ACCEPT, [DNSTAP_CONTENT_TYPE]));
  });
}).listen(process.argv[2], () => console.log('listening'));
