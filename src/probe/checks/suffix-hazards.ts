/**
 * Suffixes of the search path that break names: a wildcard below one answers for every name there is, and one that is not answered
 * with NXDOMAIN ends the walk of musl and makes the others wait.
 */
import { TYPE } from '../../wire/iana.ts';
import {
  askOne,
  brief,
  dataOfAnswer,
  isMissing,
  mustBeMissing,
  observe,
  question,
} from '../asking.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { domainName, listOf, optional } from '../parameters.ts';

/** The check `suffix-hazards`. */
export const suffixHazards: CheckKind = checkKind({
  name: 'suffix-hazards',
  summary: 'nothing answers for names that are not there, below any suffix of the search path',
  needs: 'vip',
  parameters: {
    suffixes: optional(listOf(domainName), [], 'others than those of the search path'),
    name: optional(domainName, 'www.example.com.', 'what is put before each'),
  },
  run({ suffixes, name }, context) {
    const [server] = context.vip;
    const all = suffixes.length > 0 ? suffixes : context.search.map((suffix) => `${suffix}.`);
    return Promise.all(
      all.map(async (suffix) => {
        const random = `ndots-check-${context.random.integer(0xffff_ffff).toString(36)}.${suffix}`;
        const results = [
          await askOne(context, server!, question(random, TYPE.A)),
          await askOne(context, server!, question(`${name}${suffix}`, TYPE.A)),
        ];
        const hijacked = results.find((each) => dataOfAnswer(each, TYPE.A).length > 0);
        const odd = results.find((each) => !isMissing(each));
        const { state, text } = mustBeMissing(odd ?? results[0]!, random, TYPE.A);
        if (hijacked !== undefined)
          return observe(suffix, results, {
            state: 'failed',
            text: `a wildcard below ${suffix} answers ${brief(dataOfAnswer(hijacked, TYPE.A))} for any name: names of the Internet end up there`,
          });
        return observe(suffix, results, {
          state,
          text: odd === undefined ? text : `${text}; musl ends its walk here, others wait`,
        });
      }),
    );
  },
});
