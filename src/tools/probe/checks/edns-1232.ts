/**
 * Checks that servers support EDNS with 1232 bytes (or another size), and that replies are no larger. Resolvers have
 * used that size since DNS flag day 2020.
 */
import { allServers, failed, mustHaveData, observeEach, question } from '../probe-queries.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { optional, whole } from '../../../server/kube/manifests/yaml-shape.ts';
import { askedName, askedType } from '../parameters.ts';

export const edns1232: CheckKind = checkKind({
  name: 'edns-1232',
  summary: 'queries that advertise 1232 bytes with EDNS get EDNS replies of at most that size',
  needs: 'any',
  parameters: {
    name: askedName,
    type: askedType,
    size: optional(whole(512, 4096), 1232, 'bytes that the client accepts'),
  },
  run({ name, type, size: most }, context) {
    return observeEach(
      context,
      allServers(context),
      question(name, type, most),
      (result, asked) => {
        const verdict = mustHaveData(result, asked);
        if (verdict.state !== 'ok') return verdict;
        if (result.reply?.edns === null)
          return failed(
            `${name}: the reply has no OPT record, so something on the path removes EDNS`,
          );
        if (result.size <= most) return verdict;
        return failed(`${name}: ${result.size} bytes for a client that accepts ${most}`);
      },
    );
  },
});
