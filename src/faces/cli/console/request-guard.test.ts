import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import { secretGate } from '../../../server/base/http-access.ts';
import { RequestGuard, type Refusal } from './request-guard.ts';

const token = 'a-token-of-some-length';
const guard = new RequestGuard({
  gate: secretGate(() => token),
  host: '127.0.0.1',
  port: 8053,
  hosts: ['dns.example'],
});
const own = { host: '127.0.0.1:8053', cookie: `ndots-console-8053=${token}` };

function refused(
  headers: Readonly<Record<string, string>>,
  given: string | null = null,
): number | null {
  const request = { headers } as unknown as IncomingMessage;
  const refusal = guard.foreign(request) ?? guard.decide(guard.asked(request, given));
  return (refusal as Refusal | null)?.status ?? null;
}

describe('a request of the console', () => {
  test('with the cookie or the token in the address is answered', () => {
    assert.equal(refused(own), null);
    assert.equal(refused({ host: 'localhost:8053' }, token), null);
    assert.equal(refused({ ...own, cookie: `a=b; ndots-console-8053=${token}; c=d` }), null);
  });

  test('without the token, or with another one, is refused', () => {
    assert.equal(refused({ host: '127.0.0.1:8053' }), 401);
    assert.equal(refused({ host: '127.0.0.1:8053' }, 'x'), 401);
    assert.equal(refused({ host: '127.0.0.1:8053' }, ''), 401);
    assert.equal(refused({ ...own, cookie: `ndots-console-8054=${token}` }), 401);
    assert.equal(refused({ ...own, cookie: `ndots-console-8053=${token}x` }), 401);
  });

  test('by another host name is refused, so that no foreign name can point to this page', () => {
    assert.equal(refused({ ...own, host: 'evil.example:8053' }), 421);
    assert.equal(refused({ ...own, host: '' }), 421);
    assert.equal(refused({ ...own, host: '127.0.0.1.evil.example' }), 421);
    assert.equal(refused({ ...own, host: 'DNS.example:8053' }), null);
    assert.equal(refused({ ...own, host: '[::1]:8053' }), null);
  });

  test('from a page of another site is refused, but a link to the page is followed', () => {
    assert.equal(refused({ ...own, 'sec-fetch-site': 'cross-site' }), 403);
    assert.equal(refused({ ...own, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }), 403);
    assert.equal(refused({ ...own, origin: 'https://evil.example' }), 403);
    assert.equal(refused({ ...own, origin: 'null' }), 403);
    assert.equal(refused({ ...own, origin: 'http://127.0.0.1:8053' }), null);
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    assert.equal(refused({ ...own, ...link }), null);
  });
});
