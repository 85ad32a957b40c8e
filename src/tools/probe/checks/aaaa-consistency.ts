/**
 * Checks that A and AAAA agree. A name that exists for one type exists for the other (RFC 2308 section 2.2), and AAAA
 * queries must be answered.
 */
import { TYPE } from '../../../server/wire/iana.ts';
import {
  allServers,
  ask,
  isMissing,
  isThere,
  observe,
  outcome,
  question,
  serverText,
} from '../probe-queries.ts';
import { checkKind, type Observation, type CheckKind } from '../check.ts';
import { comparedNames } from '../parameters.ts';

export const aaaaConsistency: CheckKind = checkKind({
  name: 'aaaa-consistency',
  summary: 'A and AAAA agree on whether a name exists',
  needs: 'any',
  parameters: { names: comparedNames },
  async run({ names }, context) {
    const found: Observation[] = [];
    for (const server of allServers(context)) {
      for (const name of names) {
        // Sent one after the other, whereas `pair-same-socket` sends both at once.
        const results = [
          ...(await ask(context, server, [question(name, TYPE.A)])),
          ...(await ask(context, server, [question(name, TYPE.AAAA)])),
        ];
        const [a, aaaa] = results as [(typeof results)[0], (typeof results)[0]];
        const agree = (isThere(a) && isThere(aaaa)) || (isMissing(a) && isMissing(aaaa));
        const text = `${name} A ${outcome(a, TYPE.A)}, AAAA ${outcome(aaaa, TYPE.AAAA)}`;
        found.push(
          observe(`${serverText(server)} ${name}`, results, {
            state: agree ? 'ok' : 'failed',
            text: agree ? text : `${text}: clients that query both fail or wait`,
          }),
        );
      }
    }
    return found;
  },
});
