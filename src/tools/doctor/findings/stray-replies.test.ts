import assert from 'node:assert/strict';
import { test } from 'node:test';
import { icmpError, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const CLIENT = '10.244.1.5';
const [NEAR, FAR] = ['10.244.1.11', '10.244.2.12'] as const;
const nameOf = (i: number): string => `n${i}.example.com.`;

async function codes(packets: readonly Captured[]): Promise<readonly string[]> {
  return (await examine(packets)).findings.map(({ code }) => code);
}

/** On the node: the replies of one of two pods pass, and are not translated back. */
function onNode(nearReplies: (i: number) => boolean): readonly Captured[] {
  return inOrder(
    Array.from({ length: 200 }, (_, i) => {
      const [atMs, port] = [i * 150, 30_000 + i];
      const isNear = i % 2 === 0;
      const replies = !isNear || nearReplies(i);
      return [
        ...asked(atMs, ends(CLIENT, port), nameOf(i), port, { tookMs: isNear ? null : 1 }),
        ...asked(atMs + 0.1, ends(CLIENT, port, isNear ? NEAR : FAR), nameOf(i), port, {
          tookMs: replies ? 0.5 : null,
        }),
      ];
    }),
  );
}

test('a pod whose replies pass untranslated is not a dead pod', async () => {
  assert.equal((await codes(onNode(() => true)))[0], 'ND3016');
});

test('a pod without replies is a dead pod', async () => {
  assert.equal((await codes(onNode(() => false)))[0], 'ND3008');
});

/** At the DNS pod: each question is answered, and asked again from its socket after 5 s. */
function atPod(isRefused: boolean): readonly Captured[] {
  return inOrder(
    Array.from({ length: 40 }, (_, i) => {
      const [atMs, port] = [i * 600, 30_000 + i];
      const first = asked(atMs, ends(CLIENT, port, NEAR), nameOf(i), port);
      const error = icmpError(CLIENT, first[1]!.bytes, 3, 3, NEAR);
      return [
        ...first,
        ...(isRefused ? [at(atMs + 0.7, error)] : []),
        ...asked(atMs + 5000, ends(CLIENT, port, NEAR), nameOf(i), port),
        ...asked(atMs + 50, ends('10.244.2.9', port, NEAR), nameOf(i), port),
      ];
    }),
  );
}

test('at the pod: clients reject its replies at once and retry from the same sockets', async () => {
  const found = await codes(atPod(true));
  assert.equal(found[0], 'ND3016');
  assert.ok(!found.includes('ND3021'));
});

test('at the pod: retries without rejected replies do not show the cause', async () => {
  assert.equal((await codes(atPod(false)))[0], 'ND3021');
});

/** A forwarder whose upstream replies from its second address; @param node the forwarder's address behind a translation */
function otherAddress(isRefused: boolean, node: string | null): readonly Captured[] {
  const [pod, upstream, second] = ['10.244.1.55', '10.0.0.2', '10.0.0.12'];
  return inOrder(
    Array.from({ length: 60 }, (_, i) => {
      const [atMs, port] = [i * 500, 30_000 + i];
      const from = node ?? pod;
      const [query, reply] = asked(atMs, ends(from, port, second), nameOf(i), port, { ttl: 5 });
      const sent = asked(atMs, ends(from, port, upstream), nameOf(i), port, { tookMs: null });
      const error = icmpError(from, reply!.bytes, 3, 3, second);
      return [
        ...asked(atMs - 1, ends('10.244.1.9', port, pod), nameOf(i), port, {
          tookMs: 6000,
          rcode: 2,
        }),
        ...asked(atMs - 1, ends('10.244.1.9', port + 1, pod), 'db.shop.svc.cluster.local.', port),
        ...(node === null
          ? []
          : asked(atMs - 0.1, ends(pod, port, upstream), nameOf(i), port, { tookMs: null })),
        ...sent.map((each) => ({ ...each, timeMs: query!.timeMs })),
        reply!,
        ...(isRefused ? [at(atMs + 0.7, error)] : []),
      ];
    }),
  );
}

test('an upstream that replies from its second address: the forwarder’s kernel refuses its replies', async () => {
  const { findings } = await examine(otherAddress(true, null));
  assert.deepEqual(findings.map(({ code }) => code).slice(0, 2), ['ND3016']);
  assert.match(findings[0]!.seen[0]!, /answered from 10\.0\.0\.12/);
});

test('the same on the node, which translates the forwarder’s address', async () => {
  const [first] = (await examine(otherAddress(true, '192.168.7.1'))).findings;
  assert.equal(first!.code, 'ND3016');
  assert.match(first!.seen[0]!, /answered from 10\.0\.0\.12/);
});

/**
 * Queries leave the node through one interface, and the replies from one pod arrive through another.
 * @param outThrough the interface through which they reach the client untranslated
 */
function twoInterfaces(backThrough: number, outThrough?: number): readonly Captured[] {
  return inOrder(
    Array.from({ length: 60 }, (_, i) => {
      const [atMs, port] = [i * 500, 30_000 + i];
      const isFar = i % 2 === 0;
      const [query, reply] = asked(
        atMs + 0.1,
        ends(CLIENT, port, isFar ? FAR : NEAR),
        nameOf(i),
        port,
      );
      return [
        ...asked(atMs, ends(CLIENT, port), nameOf(i), port, { tookMs: isFar ? null : 1 }),
        { ...query!, port: 2 },
        { ...reply!, port: isFar ? backThrough : 2 },
        ...(isFar && outThrough !== undefined
          ? [{ ...reply!, port: outThrough, timeMs: reply!.timeMs + 0.01 }]
          : []),
      ];
    }),
  );
}

test('replies that arrive through a different interface from the queries, and go no further', async () => {
  const [first] = (await examine(twoInterfaces(4))).findings;
  assert.equal(first!.code, 'ND3028');
  assert.match(first!.seen[0]!, /number 2\. .* number 4/);
  assert.equal((await codes(twoInterfaces(2)))[0], 'ND3016');
});

test('replies that pass a bridge untranslated are not dropped by a reverse path filter', async () => {
  assert.equal((await codes(twoInterfaces(4, 5)))[0], 'ND3016');
});

/** On the node: the replies to one of two clients of the same pod pass, and are not translated back. */
function oneClient(isSeen: boolean): readonly Captured[] {
  return inOrder(
    Array.from({ length: 60 }, (_, i) => {
      const [atMs, port] = [i * 400, 30_000 + i];
      const isHit = i % 6 === 0;
      const client = isHit ? CLIENT : '10.244.1.6';
      const behind = asked(atMs + 0.1, ends(client, port, NEAR), nameOf(i), port, {
        tookMs: isHit && !isSeen ? null : 0.5,
      });
      const error = isHit && isSeen ? icmpError(client, behind[1]!.bytes, 3, 3, NEAR) : null;
      return [
        ...asked(atMs, ends(client, port), nameOf(i), port, { tookMs: isHit ? null : 1 }),
        ...behind,
        ...(error === null ? [] : [at(atMs + 0.7, error)]),
      ];
    }),
  );
}

test('on the node: replies to one client pass untranslated, while others of the same pod are translated', async () => {
  const [first] = (await examine(oneClient(true))).findings;
  assert.equal(first!.code, 'ND3016');
  assert.match(first!.seen.join(' '), /kernel on 10\.244\.1\.5 rejected/);
  assert.notEqual((await codes(oneClient(false)))[0], 'ND3016');
});

/** On two nodes: the pods' replies to clients on their own node pass untranslated. @param isSeen the capture has these replies */
function onTwoNodes(isSeen: boolean): readonly Captured[] {
  return inOrder(
    Array.from({ length: 120 }, (_, i) => {
      const [atMs, port] = [i * 400, 30_000 + i];
      const isOther = i % 2 === 0;
      const client = isOther ? '10.244.2.40' : CLIENT;
      const pod = i % 4 < 2 ? NEAR : FAR;
      const isHit = !isOther && pod === NEAR;
      return [
        ...asked(atMs, ends(client, port), nameOf(i), port, { tookMs: isHit ? null : 1 }),
        ...asked(atMs + 0.1, ends(client, port, pod), nameOf(i), port, {
          tookMs: isHit && !isSeen ? null : 0.5,
        }),
      ];
    }),
  );
}

test('replies to clients on the pod’s own node pass untranslated, while clients elsewhere are served', async () => {
  assert.equal((await codes(onTwoNodes(true)))[0], 'ND3016');
  assert.notEqual((await codes(onTwoNodes(false)))[0], 'ND3016');
});
