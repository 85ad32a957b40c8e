/**
 * Measures the time until each replica serves a new object. If the API server watch is slow or dead, a replica silently
 * serves stale answers. The check creates a service with endpoints, queries it, and deletes it.
 */
import { Problem } from '../../../server/base/problem.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { allServers, askOne, dataOfAnswer, question, serverText } from '../probe-queries.ts';
import { checkKind, type CheckKind, type Observation, type ProbeContext } from '../check.ts';
import type { ProbeServer } from '../network.ts';
import { text, optional, required, time } from '../../../server/kube/manifests/yaml-shape.ts';

/** A documentation address (RFC 5737), which is not routable. */
const ADDRESS = '192.0.2.1';
/** Each query uses a unique name, because an early NXDOMAIN may be cached and must not affect later queries. */
const NAMES = Array.from({ length: 100 }, (_, index) => `n${index}`);
const FIRST_MS = 50;
/** Older objects were left behind by a check that was killed. */
const LEFT_MS = 10 * 60_000;

export const newObjectVisibility: CheckKind = checkKind({
  name: 'new-object-visibility',
  summary: 'how long each server takes to serve a new Service',
  needs: 'any',
  parameters: {
    namespace: required(text, 'namespace of the Service that is created and deleted'),
    within: optional(time(100, 120_000), 10_000, 'a longer time is a failure'),
  },
  async run({ namespace, within }, context) {
    const servers = allServers(context);
    const { objects } = context;
    const unknown = (text: string): readonly Observation[] =>
      servers.map((server) => observed(server, 'unknown', text, null, 0, 0));
    const name = `ndots-check-${context.random.integer(0xffff_ffff).toString(36)}`;
    try {
      for (const left of await objects.leftBehind(namespace, LEFT_MS))
        await objects.remove(namespace, left);
      await objects.make({ namespace, name, address: ADDRESS, hostnames: NAMES });
    } catch (error) {
      if (error instanceof Problem) return unknown(error.message);
      if (!(error instanceof ApiFailure)) throw error;
      await objects.remove(namespace, name).catch(() => undefined);
      return unknown(error.advice === '' ? error.message : `${error.message}; ${error.advice}`);
    }
    const zone = `${name}.${namespace}.svc.${context.clusterDomain}.`;
    try {
      return await Promise.all(servers.map((server) => follow(server, zone, within, context)));
    } finally {
      // If this fails, a later round deletes it.
      await objects.remove(namespace, name).catch(() => undefined);
    }
  },
});

async function follow(
  server: ProbeServer,
  zone: string,
  withinMs: number,
  context: ProbeContext,
): Promise<Observation> {
  const { clock } = context;
  const begun = clock.now();
  let sent = 0;
  let lost = 0;
  let waitMs = FIRST_MS;
  for (const name of NAMES) {
    const asked = await askOne(context, server, question(`${name}.${zone}`, TYPE.A));
    sent += asked.sent;
    lost += asked.lost;
    const tookMs = clock.now() - begun;
    if (dataOfAnswer(asked, TYPE.A).includes(ADDRESS))
      return observed(server, 'ok', `served after ${Math.round(tookMs)} ms`, tookMs, sent, lost);
    if (tookMs >= withinMs) break;
    const left = Math.min(waitMs, withinMs - tookMs);
    await new Promise<void>((resolve) => void clock.after(left, resolve));
    waitMs = Math.min(1500, waitMs * 1.1);
  }
  return observed(
    server,
    'failed',
    `a new service is still not served after ${withinMs} ms`,
    null,
    sent,
    lost,
  );
}

function observed(
  server: ProbeServer,
  state: Observation['state'],
  text: string,
  tookMs: number | null,
  sent: number,
  lost: number,
): Observation {
  return { target: serverText(server), state, text, tookMs, sent, lost };
}
