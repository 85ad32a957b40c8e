/**
 * Queries the service address from the same source port in every round. The kernel therefore sends each query to the
 * same place as the previous one. Nothing else reveals conntrack entries for a deleted server, or those created while
 * the service had no endpoints.
 */
import { askOne, mustHaveData, observe, question, serverText } from '../probe-queries.ts';
import { checkKind, type Observation, type CheckKind } from '../check.ts';
import { optional, whole } from '../../../server/kube/manifests/yaml-shape.ts';
import { askedName, askedType } from '../parameters.ts';

export const vipFixedPort: CheckKind = checkKind({
  name: 'vip-fixed-port',
  summary: 'the service address answers queries from one source port in every round',
  needs: 'vip',
  parameters: {
    name: askedName,
    type: askedType,
    sourcePort: optional(whole(1024, 65_535), 45_353, 'source port of the queries'),
  },
  async run({ name, type, sourcePort }, context) {
    const asked = question(name, type);
    const found: Observation[] = [];
    for (const server of context.vip) {
      const result = await askOne(context, server, asked, { sourcePort });
      const { state, text } = mustHaveData(result, asked);
      const isOurs = result.sent === 0;
      const silent = result.reply === null && !isOurs;
      found.push(
        observe(serverText(server), [result], {
          state: isOurs ? 'unknown' : state,
          text: silent
            ? `${text} from port ${sourcePort}; if fresh ports get answers, the kernel still sends this port to a deleted server (conntrack -L -p udp --orig-port-src ${sourcePort})`
            : text,
        }),
      );
    }
    return found;
  },
});
