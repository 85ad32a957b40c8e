import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeaderDecoder } from './header-decoder.ts';
import { contentLength, pathAndAccept, requestFields } from './request-fields.ts';

function decoded(block: Buffer): Record<string, string> {
  const decoder = new HeaderDecoder();
  const fields: Record<string, string> = {};
  decoder.begin(block, 0, block.length);
  while (decoder.next()) {
    const name = Buffer.from(decoder.name.subarray(decoder.nameStart, decoder.nameEnd));
    const value = decoder.value.subarray(decoder.valueStart, decoder.valueEnd);
    fields[name.toString()] = Buffer.from(value).toString();
  }
  assert.equal(decoder.broken, false);
  return fields;
}

const media = 'application/dns-message';

test('a POST request describes its body', () => {
  const block = requestFields('POST', 'dns.example:8443', '/dns-query', media);
  assert.deepEqual(decoded(Buffer.concat([block, contentLength(300)])), {
    ':method': 'POST',
    ':scheme': 'https',
    ':authority': 'dns.example:8443',
    ':path': '/dns-query',
    accept: media,
    'content-type': media,
    'content-length': '300',
  });
});

test('a GET request contains its query, however long', () => {
  for (const size of [1, 126, 127, 128, 400, 20_000]) {
    const path = `/dns-query?dns=${'A'.repeat(size)}`;
    const block = requestFields('GET', 'dns.example', '/dns-query', media);
    const fields = decoded(Buffer.concat([block, pathAndAccept(path, media)]));
    assert.equal(fields[':path'], path);
    assert.equal(fields['accept'], media);
  }
});
