import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultIpvs, IpvsService } from './ipvs.ts';
import { SnatPorts } from './snat.ts';

test('IPVS loses packets of old ports for 300 s after a server is gone', () => {
  const service = new IpvsService(defaultIpvs, ['a', 'b']);
  assert.deepEqual(service.packet(40_000, 0), { server: 'a' });
  service.remove('a');
  assert.equal(service.packet(40_000, 1000), 'lost');
  assert.equal(service.packet(40_000, 299_999), 'lost');
  assert.deepEqual(service.packet(40_000, 300_000), { server: 'b' });
  assert.deepEqual(service.packet(40_001, 2000), { server: 'b' });
});

test('with expire_nodest_conn only the first packet of such a port is lost', () => {
  const service = new IpvsService({ ...defaultIpvs, expireNoDestination: true }, ['a', 'b']);
  service.packet(40_000, 0);
  service.remove('a');
  assert.equal(service.packet(40_000, 1000), 'lost');
  assert.deepEqual(service.packet(40_000, 1001), { server: 'b' });
});

test('a service without servers loses everything', () => {
  assert.equal(new IpvsService(defaultIpvs, []).packet(1, 0), 'lost');
});

test('a source port is free again when its time has passed', () => {
  const ports = new SnatPorts(2, 30);
  assert.deepEqual([ports.open(0), ports.open(1000), ports.open(29_999)], [true, true, false]);
  assert.deepEqual([ports.taken(29_999), ports.lost], [2, 1]);
  assert.equal(ports.open(30_000), true);
});
