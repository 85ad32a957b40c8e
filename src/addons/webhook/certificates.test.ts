import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { Authority } from './certificates.ts';

test('a server certificate lists its hosts and addresses and is signed by its CA', () => {
  const authority = Authority.make('root');
  const made = authority.issue('server', ['127.0.0.1', '::1', 'kubernetes.default.svc']);
  const found = new X509Certificate(made.cert);
  assert.ok(found.verify(new X509Certificate(authority.cert).publicKey));
  assert.equal(found.subject, 'CN=server');
  assert.equal(found.issuer, 'CN=root');
  assert.equal(found.checkIP('127.0.0.1'), '127.0.0.1');
  assert.equal(found.checkHost('kubernetes.default.svc'), 'kubernetes.default.svc');
  assert.equal(found.checkHost('elsewhere'), undefined);
  assert.equal(found.ca, false);
  assert.equal(new X509Certificate(authority.cert).ca, true);
});

test('a restored CA still signs certificates, and they expire on time', () => {
  const now = Date.parse('2030-01-01T00:00:00Z');
  const made = Authority.make('root', 10 * 24 * 3600_000, now);
  const again = Authority.of(made.identity);
  const until = new Date(now + 3600_000);
  const server = new X509Certificate(again.issue('server', ['a.svc'], until, now).cert);
  assert.ok(server.verify(new X509Certificate(made.cert).publicKey));
  assert.equal(server.validToDate.getTime(), until.getTime());
  assert.equal(new X509Certificate(made.cert).validToDate.getTime(), now + 10 * 24 * 3600_000);
});

test('a CA with a comma in its name is recorded as the issuer', () => {
  const { identity } = Authority.make('root, the second');
  const authority = new X509Certificate(identity.cert);
  const server = new X509Certificate(Authority.of(identity).issue('server', ['a.svc']).cert);
  assert.ok(server.checkIssued(authority));
});
