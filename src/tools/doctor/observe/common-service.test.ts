import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serviceOf } from './common-service.ts';

for (const [name, service] of [
  ['redis.cache.svc.cluster.local.', 'redis.cache.svc.cluster.local.'],
  ['redis-0.redis.cache.svc.cluster.local.', 'redis.cache.svc.cluster.local.'],
  ['_http._tcp.redis.cache.svc.cluster.local.', 'redis.cache.svc.cluster.local.'],
  ['svc.cache.svc.cluster.local.', 'svc.cache.svc.cluster.local.'],
  ['cache.svc.cluster.local.', null],
  ['example.com.', null],
] as const)
  test(`the Service of ${name} is ${service}`, () => assert.equal(serviceOf(name), service));
