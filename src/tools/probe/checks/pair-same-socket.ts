/**
 * Sends A and AAAA from one socket at the same time, as glibc and musl do. If two CPUs race to create the same
 * conntrack entry, one query is lost.
 */
import { TYPE } from '../../../server/wire/iana.ts';
import { ask, isThere, observe, outcome, question, serverText } from '../probe-queries.ts';
import { checkKind, type Observation, type CheckKind } from '../check.ts';
import type { ProbeResult } from '../network.ts';
import { optional, whole } from '../../../server/kube/manifests/yaml-shape.ts';
import { askedName } from '../parameters.ts';

export const pairSameSocket: CheckKind = checkKind({
  name: 'pair-same-socket',
  summary: 'A and AAAA queries sent together from one socket are both answered',
  needs: 'vip',
  parameters: {
    name: askedName,
    pairs: optional(whole(1, 100), 5, 'number of pairs, each from a separate socket'),
  },
  async run({ name, pairs }, context) {
    const found: Observation[] = [];
    for (const server of context.vip) {
      const results: ProbeResult[] = [];
      let broken = 0;
      let failure = '';
      for (let count = 0; count < pairs; count++) {
        const pair = await ask(context, server, [
          question(name, TYPE.A),
          question(name, TYPE.AAAA),
        ]);
        results.push(...pair);
        if (pair[0]!.lost + pair[1]!.lost === 1) broken++;
        const bad = pair.findIndex((each) => !isThere(each));
        if (bad >= 0)
          failure = `${bad === 0 ? 'A' : 'AAAA'} ${outcome(pair[bad]!, bad === 0 ? TYPE.A : TYPE.AAAA)}`;
      }
      const race =
        broken === 0
          ? ''
          : `; one of the two queries was lost in ${broken} of ${pairs} pairs. If this continues, the cause is the conntrack race, which a node cache avoids`;
      found.push(
        observe(serverText(server), results, {
          state: failure === '' ? (broken > 1 ? 'warning' : 'ok') : 'failed',
          text: failure === '' ? `${name} A and AAAA${race}` : `${name}: ${failure}${race}`,
        }),
      );
    }
    return found;
  },
});
