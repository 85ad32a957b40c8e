import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TYPE } from '../../server/wire/iana.ts';
import { readMessage } from '../../server/wire/message.ts';
import { replyBytes } from './reply-bytes.ts';

test('the SOA of an empty answer after an alias is of the target’s zone', () => {
  const reply = {
    id: 7,
    name: 'api.twilio.com.',
    type: 'AAAA',
    rcode: 'NOERROR',
    authoritative: false,
    recursionAvailable: true,
    truncated: false,
    answer: [{ name: 'api.twilio.com.', type: 'CNAME', ttl: 30, data: 'lb.example.net.' }],
    negativeTtl: 30,
    opt: false,
    size: 0,
  } as const;
  const owner = (given: Parameters<typeof replyBytes>[0]): string | undefined =>
    readMessage(replyBytes(given)).authority.find(({ type }) => type === TYPE.SOA)?.name;
  assert.equal(owner(reply), 'lb.example.net.');
  assert.equal(owner({ ...reply, answer: [] }), 'api.twilio.com.');
});
