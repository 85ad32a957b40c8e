import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ReplyReader, type ReplyHead } from './http1.ts';
import { MalformedStream } from '../store/json-stream.ts';

interface Read {
  readonly reader: ReplyReader;
  readonly heads: ReplyHead[];
  readonly body: () => string;
  readonly ends: () => number;
}

function read(bytes: Buffer, cuts: readonly number[] = []): Read {
  const heads: ReplyHead[] = [];
  const pieces: Buffer[] = [];
  let ends = 0;
  const reader = new ReplyReader({
    head: (head) => heads.push(head),
    body: (piece) => pieces.push(Buffer.from(piece)),
    end: () => ends++,
  });
  let from = 0;
  for (const to of [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort(
    (a, b) => a - b,
  )) {
    reader.push(bytes.subarray(from, to));
    from = to;
  }
  reader.push(bytes.subarray(from));
  return { reader, heads, body: () => Buffer.concat(pieces).toString(), ends: () => ends };
}

const cuts = fc.array(fc.nat(3000), { maxLength: 12 });

describe('a reply split anywhere', () => {
  test('with a length is read to its end', () => {
    fc.assert(
      fc.property(fc.string(), cuts, (body, places) => {
        const head = `HTTP/1.1 200 OK\r\nContent-Type: a\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
        const found = read(Buffer.from(head + body), places);
        assert.equal(found.body(), body);
        assert.equal(found.ends(), 1);
        assert.ok(found.reader.done && found.reader.reusable);
        assert.equal(found.heads[0]!.fields.get('content-type'), 'a');
      }),
    );
  });

  test('in chunks is read to its end, without extensions and trailers', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ minLength: 1 })), cuts, (chunks, places) => {
        const body = chunks
          .map((chunk) => `${Buffer.byteLength(chunk).toString(16)};x=1\r\n${chunk}\r\n`)
          .join('');
        const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
        const found = read(Buffer.from(`${head}${body}0\r\nTrailer: 1\r\n\r\n`), places);
        assert.equal(found.body(), chunks.join(''));
        assert.equal(found.ends(), 1);
        assert.ok(found.reader.reusable);
      }),
    );
  });

  test('without either ends with the connection', () => {
    fc.assert(
      fc.property(fc.string(), cuts, (body, places) => {
        const found = read(Buffer.from(`HTTP/1.1 200 OK\r\n\r\n${body}`), places);
        assert.equal(found.ends(), 0);
        assert.equal(found.reader.close(), true);
        assert.equal(found.body(), body);
        assert.equal(found.ends(), 1);
        assert.equal(found.reader.reusable, false);
      }),
    );
  });
});

describe('a reply', () => {
  test('that breaks off is incomplete', () => {
    for (const text of [
      '',
      'HTTP/1.1 200 OK\r\nContent-Le',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n',
    ]) {
      const { reader } = read(Buffer.from(text));
      assert.equal(reader.close(), false, text);
      assert.equal(reader.untouched, text === '');
    }
  });

  test('may be preceded by others (100, 103), which are ignored', () => {
    const found = read(
      Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n'),
    );
    assert.deepEqual(
      found.heads.map((head) => head.status),
      [204],
    );
    assert.equal(found.ends(), 1);
  });

  test('that closes its connection is the last one', () => {
    for (const head of ['HTTP/1.1 200 OK\r\nConnection: Close', 'HTTP/1.0 200 OK']) {
      const found = read(Buffer.from(`${head}\r\nContent-Length: 0\r\n\r\n`));
      assert.equal(found.ends(), 1);
      assert.equal(found.reader.reusable, false);
    }
  });

  test('followed by unsolicited bytes makes the connection unusable', () => {
    const found = read(Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200'));
    assert.equal(found.reader.reusable, false);
  });

  test('that is not HTTP is an error', () => {
    for (const text of [
      'SSH-2.0-OpenSSH_9.7\r\n\r\n',
      'HTTP/1.1 200 OK\r\n: x\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n',
      `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}`,
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1'.repeat(2000)}`,
    ]) {
      assert.throws(() => read(Buffer.from(text)), MalformedStream, text.slice(0, 60));
    }
  });
});
