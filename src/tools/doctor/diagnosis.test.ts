/** The work of a diagnosis, for captures that no cluster makes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';
import { back, dnsMessage, udpPacket } from '../../../test/kit/packets.ts';
import { diagnose } from './diagnosis.ts';
import { deadBackend } from './findings/dead-backend.ts';
import { noPortsLeft } from './findings/no-ports-left.ts';
import { randomLoss } from './findings/random-loss.ts';
import { serverFails } from './findings/servfail.ts';
import { tcpBlocked } from './findings/tcp-blocked.ts';
import { lostMasquerade } from './findings/untranslated-service.ts';
import { Claims } from './observe/claims.ts';
import { Observations } from './observe/observations.ts';
import { FLAG } from '../../server/wire/iana.ts';
import { Reading } from '../capture/read/reading.ts';

test('many silent addresses beside many DNS pods, each asked for a name of its own, are judged in time that grows with their number', async () => {
  const [many, few] = [silent(800), silent(100)];
  await costsAtMost(
    24,
    () => diagnose(many),
    () => diagnose(few),
  );
});

test('losses from many clients to many servers are judged in time that grows with their number', async () => {
  const [many, few] = [crowd(3200), crowd(400)];
  await costsAtMost(
    24,
    () => randomLoss.inCapture!(many, new Claims(many)),
    () => randomLoss.inCapture!(few, new Claims(few)),
  );
});

test('many clients of one server, with losses and truncated replies, are judged in time that grows with their number', async () => {
  const [many, few] = [oneServer(16_000), oneServer(2000)];
  for (const kind of [noPortsLeft, tcpBlocked])
    await costsAtMost(
      24,
      () => kind.inCapture!(many, new Claims(many)),
      () => kind.inCapture!(few, new Claims(few)),
    );
});

test('many servers that fail or lose queries are judged in time that grows with their number', async () => {
  const [many, few] = [failing(8000), failing(1000)];
  // Quadratic time would be 64 times as much. The few fit into the CPU’s caches.
  for (const kind of [lostMasquerade, serverFails])
    await costsAtMost(
      40,
      () => kind.inCapture!(many, new Claims(many)),
      () => kind.inCapture!(few, new Claims(few)),
    );
});

test('a few clients of many servers, with losses, are judged in time that grows with their number', async () => {
  const [many, few] = [fewClients(800), fewClients(100)];
  await costsAtMost(
    24,
    () => deadBackend.inCapture!(many, new Claims(many)),
    () => deadBackend.inCapture!(few, new Claims(few)),
  );
});

/** Four clients query this many servers three times each for cluster names. A seventh of the queries is lost. */
function fewClients(count: number): Observations {
  let observed: Observations | null = null;
  const reading: Reading = new Reading({ ended: (each) => observed?.exchange(each) });
  observed = new Observations(reading.domains);
  for (let nth = 0; nth < 12 * count; nth++) {
    const to = `10.1.${(nth % count) >> 8}.${(nth % count) & 255}`;
    const ends = {
      from: `10.4.0.${Math.floor(nth / count) & 3}`,
      fromPort: 1024 + nth,
      to,
      toPort: 53,
    };
    for (const reply of nth % 7 === 0 ? [false] : [false, true]) {
      const message = dnsMessage(`x${nth % 100}.b.svc.cluster.local.`, 'A', { id: 7, reply });
      const bytes = udpPacket(reply ? back(ends) : ends, message, 1 + nth, 64);
      reading.takeNetwork(bytes, 0, bytes.length, 1.7e12 + nth, 0);
    }
  }
  reading.end();
  return observed;
}

/** This many servers. Half of them lose a query, and half forward one and fail. */
function failing(count: number): Observations {
  let observed: Observations | null = null;
  const reading: Reading = new Reading({ ended: (each) => observed?.exchange(each) });
  observed = new Observations(reading.domains);
  const address = (network: number, nth: number): string =>
    `10.${network}.${nth >> 8}.${nth & 255}`;
  for (let nth = 0; nth < count; nth++) {
    const timeMs = 1.7e12 + nth;
    const pairs =
      nth % 2 === 0
        ? [['10.4.0.1', address(1, nth)] as const]
        : [['10.4.0.1', address(2, nth)] as const, [address(2, nth), address(3, nth)] as const];
    const name = nth === 1 ? 'a.b.svc.cluster.local.' : `x${nth}.example.com.`;
    for (const [from, to] of pairs) {
      const ends = { from, fromPort: 1024 + (nth % 60_000), to, toPort: 53 };
      for (const reply of nth % 2 === 0 ? [false] : [false, true]) {
        const message = dnsMessage(name, 'A', { id: 7, reply, rcode: reply ? 2 : 0 });
        const bytes = udpPacket(reply ? back(ends) : ends, message, 1 + (nth % 60_000), 64);
        reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
      }
    }
  }
  reading.end();
  return observed;
}

/** This many clients, each of which sends one query. A third is answered, a third truncated and a third lost. */
function oneServer(count: number): Observations {
  let observed: Observations | null = null;
  const reading: Reading = new Reading({ ended: (each) => observed?.exchange(each) });
  observed = new Observations(reading.domains);
  for (let nth = 0; nth < count; nth++) {
    const ends = {
      from: `10.1.${nth >> 8}.${nth & 255}`,
      fromPort: 1024 + ((nth * 7919) % 60_000),
      to: '10.2.0.1',
      toPort: 53,
    };
    for (const reply of nth % 3 === 0 ? [false] : [false, true]) {
      const flags = FLAG.RD | (reply ? FLAG.QR : 0) | (reply && nth % 3 === 1 ? FLAG.TC : 0);
      const message = dnsMessage('www.example.com.', 'A', { id: 7, reply, flags });
      const bytes = udpPacket(reply ? back(ends) : ends, message, 1 + (nth % 60_000), 64);
      reading.takeNetwork(bytes, 0, bytes.length, 1.7e12 + nth, 0);
    }
  }
  reading.end();
  return observed;
}

/** This many clients, each of which sends one query to a server of its own. Half of the queries get no reply. */
function crowd(count: number): Observations {
  let observed: Observations | null = null;
  const reading: Reading = new Reading({ ended: (each) => observed?.exchange(each) });
  observed = new Observations(reading.domains);
  const timeMs = 1.7e12;
  for (let nth = 0; nth < count; nth++) {
    const address = (net: number): string => `10.${net}.${nth >> 8}.${nth & 255}`;
    const fromPort = 1024 + ((nth * 7919) % 60_000);
    const ends = { from: address(1), fromPort, to: address(2), toPort: 53 };
    for (const reply of nth % 2 === 0 ? [false] : [false, true]) {
      const message = dnsMessage(`x${nth}.crowd.example.`, 'A', { id: 7, reply });
      const bytes = udpPacket(reply ? back(ends) : ends, message, 1 + nth, 64);
      reading.takeNetwork(bytes, 0, bytes.length, timeMs + 30 * nth, 0);
    }
  }
  reading.end();
  return observed;
}

/** This many silent addresses beside as many DNS pods. */
function silent(count: number): Observations {
  let observed: Observations | null = null;
  const reading: Reading = new Reading({ ended: (each) => observed?.exchange(each) });
  observed = new Observations(reading.domains);
  let timeMs = 1.7e12;
  const address = (network: number, nth: number): string =>
    `10.${network}.${nth >> 8}.${nth & 255}`;
  const ask = (pair: number, nth: number, isAnswered: boolean): void => {
    const [from, to] = [address(pair, nth), address(pair + 100, nth)];
    const ends = { from, fromPort: 4000, to, toPort: 53 };
    const name = `s${nth}-${pair}.a.svc.cluster.local.`;
    for (const reply of isAnswered ? [false, true] : [false]) {
      const message = dnsMessage(name, 'A', { id: 7, reply });
      const bytes = udpPacket(reply ? back(ends) : ends, message, 1 + (timeMs % 60_000), 64);
      reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
    }
    timeMs += 1;
  };
  for (let round = 0; round < 3; round++)
    for (let nth = 0; nth < count; nth++) {
      ask(1, nth, false);
      ask(2, nth, true);
    }
  timeMs += 60_000;
  ask(3, 0, true);
  reading.end();
  assert.equal(observed.servers.size, 2 * count + 1);
  return observed;
}

test('an address that is asked for on the local network and does not answer is reported, though no query to it was seen', () => {
  const observed = new Observations(new Reading({}).domains);
  for (let nth = 0; nth < 5; nth++)
    observed.neighbour(1.7e12 + nth, false, Uint8Array.of(10, 244, 1, 200, 10, 244, 1, 5), 0, 4, 4);
  const { unknown } = diagnose(observed);
  assert.match(
    unknown.find(({ code }) => code === 'ND3015')?.reason ?? '',
    /^5 requests for 10\.244\.1\.200 .* got no answer/,
  );
});
