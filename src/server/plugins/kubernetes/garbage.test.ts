import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parseName } from '../../wire/name.ts';
import { makeQuery, Query } from '../../transport/query.ts';
import {
  answererOf,
  replicatedCluster,
  manyObjects,
} from '../../../../test/kit/replicated-cluster.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const askedOn = (): never => {
  throw new Error('asked on');
};

function bytesOf(name: string, type: number): Uint8Array {
  const { bytes, start, end } = makeQuery(parseName(name), type);
  return bytes.slice(start, end);
}

test('a repeated query takes no memory, whether it has an answer, has no data or is NXDOMAIN', () => {
  const answerer = answererOf(replicatedCluster(manyObjects(500, 2, false)).cluster);
  const services = Array.from(
    { length: 500 },
    (_, i) => `service-${i}.team-${i % 50}.svc.cluster.local.`,
  );
  const questions = services.flatMap((name) => [
    bytesOf(name, 1),
    bytesOf(name, 28),
    bytesOf(`www.example.com.${name}`, 1),
  ]);
  const query = new Query();
  const ask = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const bytes = questions[i % questions.length]!;
      query.read(bytes, 0, bytes.length);
      void answerer.answer(query, askedOn);
    }
  };
  ask(100_000);
  let least = Infinity;
  // The first runs include compilation.
  for (let run = 0; run < 5 && least >= 8; run++) {
    collect();
    const before = process.memoryUsage().heapUsed;
    ask(20_000);
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / 20_000);
  }
  assert.ok(least < 8, `${least.toFixed(1)} bytes per query`);
});

test('a flood of names queried once is not stored beyond the limits', () => {
  const answerer = answererOf(replicatedCluster(manyObjects(10, 1, false)).cluster);
  const query = new Query();
  const flood = (from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      const bytes = bytesOf(`x${i}.team-1.svc.cluster.local.`, 1);
      // Twice, like a flood that retries.
      for (let again = 0; again < 2; again++) {
        query.read(bytes, 0, bytes.length);
        void answerer.answer(query, askedOn);
      }
    }
  };
  flood(0, 60_000);
  collect();
  const before = process.memoryUsage().heapUsed;
  flood(60_000, 160_000);
  collect();
  const grown = (process.memoryUsage().heapUsed - before) / 2 ** 20;
  assert.ok(grown < 8, `${grown.toFixed(1)} MiB`);
});
