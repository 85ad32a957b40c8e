/** Queries the service address from new source ports, so that each query creates a conntrack entry. */
import { askOne, mustHaveData, observe, question, serverText } from '../probe-queries.ts';
import { checkKind, type Observation, type CheckKind } from '../check.ts';
import type { ProbeResult } from '../network.ts';
import { optional, whole } from '../../../server/kube/manifests/yaml-shape.ts';
import { askedName, askedType } from '../parameters.ts';

export const vipFreshPort: CheckKind = checkKind({
  name: 'vip-fresh-port',
  summary: 'the service address answers queries from fresh source ports',
  needs: 'vip',
  parameters: {
    name: askedName,
    type: askedType,
    queries: optional(whole(1, 100), 3, 'number of queries, one after the other'),
  },
  async run({ name, type, queries }, context) {
    const asked = question(name, type);
    const found: Observation[] = [];
    for (const server of context.vip) {
      const results: ProbeResult[] = [];
      for (let count = 0; count < queries; count++)
        results.push(await askOne(context, server, asked));
      const bad = results.filter((each) => mustHaveData(each, asked).state !== 'ok');
      const [first = results[0]!] = bad;
      const verdict = mustHaveData(first, asked);
      found.push(
        observe(serverText(server), results, {
          ...verdict,
          text:
            bad.length > 0 && bad.length < queries
              ? `${bad.length} of ${queries} queries failed: ${verdict.text} (is one of the servers behind the address down?)`
              : verdict.text,
        }),
      );
    }
    return found;
  },
});
