/**
 * Checks that a large answer is truncated over UDP without EDNS but complete over TCP, where clients retry (RFC 7766
 * section 5).
 */
import { FLAG } from '../../../server/wire/iana.ts';
import {
  allServers,
  askOne,
  brief,
  dataOfAnswer,
  failed,
  observe,
  outcome,
  question,
  serverText,
} from '../probe-queries.ts';
import { checkKind, type ProbeContext, type Observation, type CheckKind } from '../check.ts';
import type { ProbeServer } from '../network.ts';
import { required } from '../../../server/kube/manifests/yaml-shape.ts';
import { askedType, domainName } from '../parameters.ts';

export const truncationRoundtrip: CheckKind = checkKind({
  name: 'truncation-roundtrip',
  summary: 'an answer too large for 512 bytes is truncated over UDP and complete over TCP',
  needs: 'any',
  parameters: {
    name: required(
      domainName,
      'a name with a large answer, such as a headless service with many pods',
    ),
    type: askedType,
  },
  run({ name, type }, context) {
    return Promise.all(allServers(context).map((server) => oneTrip(server, name, type, context)));
  },
});

async function oneTrip(
  server: ProbeServer,
  name: string,
  type: number,
  context: ProbeContext,
): Promise<Observation> {
  const target = serverText(server);
  const asked = question(name, type);
  const small = await askOne(context, server, asked);
  const { reply } = small;
  if (reply === null) return observe(target, [small], failed(`${name}: ${outcome(small, type)}`));
  if (small.size > 512)
    return observe(
      target,
      [small],
      failed(`${name}: ${small.size} bytes over UDP for a client that accepts 512`),
    );
  const whole = await askOne(context, server, asked, { protocol: 'tcp' });
  const both = [small, whole];
  const data = dataOfAnswer(whole, type);
  if (outcome(whole, type) !== 'NOERROR')
    return observe(target, both, {
      state: 'failed',
      text: `${name} over TCP: ${outcome(whole, type)}; clients that get a truncated answer fail`,
    });
  if ((reply.flags & FLAG.TC) === 0) {
    const same = dataOfAnswer(small, type).length === data.length;
    return observe(target, both, {
      state: same ? 'warning' : 'failed',
      text: same
        ? `${name} has ${data.length} records, which fit into 512 bytes; use a name with more`
        : `${name}: ${dataOfAnswer(small, type).length} of ${data.length} records over UDP without TC set, so clients never get the rest`,
    });
  }
  return observe(target, both, {
    state: 'ok',
    text: `${name}: truncated at ${small.size} bytes, complete over TCP with ${data.length} records (${brief(data, 2)})`,
  });
}
