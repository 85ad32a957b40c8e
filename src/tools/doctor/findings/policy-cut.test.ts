import assert from 'node:assert/strict';
import { test } from 'node:test';
import { icmpError, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [SERVICE, NEAR, FAR, HOST] = ['10.96.0.10', '10.244.1.3', '10.244.2.5', '192.168.56.12'];
const PROHIBITED = 10;

/** Two clients, whose queries go to two pods in turn; a firewall on the host of one rejects them. @param onNode the capture shows the pods */
function rejecting(onNode: boolean): readonly Captured[] {
  return inOrder(
    Array.from({ length: 40 }, (_, i) => {
      const [atMs, port] = [i * 500, 30_000 + i];
      const client = `10.244.1.${4 + (i % 2)}`;
      const isFar = i % 4 < 2;
      const tookMs = isFar ? null : 1;
      const name = `n${i % 7}.shop.svc.cluster.local.`;
      const [query, ...reply] = asked(atMs, ends(client, port), name, port, { tookMs });
      const behind = asked(atMs + 0.1, ends(client, port, isFar ? FAR : NEAR), name, port, {
        tookMs: isFar ? null : 0.5,
      });
      const error = (sender: string, { bytes }: Captured): Captured =>
        at(atMs + 0.5, icmpError(sender, bytes, 3, PROHIBITED, client));
      return [
        query!,
        ...(onNode ? behind : []),
        ...reply,
        ...(isFar && onNode ? [error(HOST, behind[0]!)] : []),
        ...(isFar ? [error(SERVICE, query!)] : []),
      ];
    }),
  );
}

test('a firewall that rejects the queries to one pod is reported with this pod', async () => {
  const [first] = (await examine(rejecting(true))).findings;
  assert.equal(first?.code, 'ND3004');
  assert.match(first.title, /the queries to one DNS pod/);
  const seen = first.seen.join(' ');
  assert.match(seen, /translated to 10\.244\.2\.5 .* 20 packets to 10\.244\.2\.5/);
  assert.match(seen, /^[^]*192\.168\.56\.12 sends these errors/);
  assert.match(seen, /went to 10\.244\.1\.3 were answered/);
});

test('at clients that are answered in the meantime, it rejects what goes to some of the pods', async () => {
  const [first] = (await examine(rejecting(false))).findings;
  assert.equal(first?.code, 'ND3004');
  assert.match(first.title, /some DNS pods, while others answer/);
  assert.doesNotMatch(first.title, /cut off/);
});

/**
 * At one DNS pod: clients of one network get no replies. @param prefix of these clients
 * @param isAtPod the capture has the pod's own queries
 * @param isTranslated it also has the queries to the Service's address, which reach two pods
 */
function unanswered(prefix: string, isAtPod: boolean, isTranslated = false): readonly Captured[] {
  const pods = isTranslated ? [NEAR, FAR] : [FAR];
  return inOrder(
    Array.from({ length: 320 }, (_, i) => {
      const [atMs, port] = [i * 100, 30_000 + i];
      const isCut = i % 16 < 2;
      const client = isCut ? `${prefix}.${8 + (i % 2)}` : `10.244.1.${4 + (i % 2)}`;
      // The capture is not at the other pod, so it has no queries of other clients to it.
      const pod = isCut ? pods[(i >> 4) % pods.length]! : FAR;
      const name = `n${i % 7}.example.com.`;
      const tookMs = isCut ? null : 1;
      return [
        ...(isTranslated
          ? asked(atMs - 0.1, ends(client, port), name, port, {
              tookMs: tookMs === null ? null : 2,
            })
          : []),
        ...asked(atMs, ends(client, port, pod), name, port, { tookMs }),
        ...(isAtPod && !isCut
          ? asked(atMs + 0.2, ends(FAR, port, '10.0.0.2'), name, port + 1, { tookMs: 0.5 })
          : []),
      ];
    }),
  );
}

test('a server that receives the queries of one network and never answers has an access list', async () => {
  for (const isTranslated of [false, true]) {
    const [first] = (await examine(unanswered('10.245.7', true, isTranslated))).findings;
    assert.equal(first?.code, 'ND3004');
    assert.match(first.title, /receives queries from some networks/);
    assert.match(first.seen[0]!, /arrive at 10\.244\.2\.5, .* 10\.245\.7\.0\/24/);
    assert.match(first.fix[0]!, /access list/);
  }
});

test('clients in the network of answered ones, or away from the server, do not show an access list', async () => {
  for (const packets of [unanswered('10.244.1', true), unanswered('10.245.7', false)]) {
    const [first] = (await examine(packets)).findings;
    assert.equal(first?.code, 'ND3004');
    assert.doesNotMatch(first.title, /networks/);
  }
});
