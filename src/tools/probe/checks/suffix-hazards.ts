/**
 * Detects search domains that break names. If a domain contains a wildcard, every name is answered. If it does not
 * return NXDOMAIN, it ends musl's search and makes other clients wait.
 */
import { TYPE } from '../../../server/wire/iana.ts';
import {
  askOne,
  brief,
  dataOfAnswer,
  isMissing,
  mustBeMissing,
  observe,
  question,
  type AskingContext,
} from '../probe-queries.ts';
import { checkKind, type CheckKind, type ProbeContext } from '../check.ts';
import type { ProbeResult, ProbeServer } from '../network.ts';
import { optional } from '../../../server/kube/manifests/yaml-shape.ts';
import { domainName, several } from '../parameters.ts';

/** The replies for nonexistent names under a suffix. */
export interface SuffixReplies {
  /** The random name that was queried. */
  readonly random: string;
  readonly results: readonly ProbeResult[];
  /** The wildcard's data, or empty if there is no wildcard. */
  readonly wildcard: readonly string[];
  /** A reply other than NXDOMAIN, or null if there is none. */
  readonly odd: ProbeResult | null;
}

/** Queries a random name and an Internet name under a suffix, both as absolute names. */
export async function askBelow(
  asking: AskingContext & Pick<ProbeContext, 'random'>,
  server: ProbeServer,
  suffix: string,
  name: string,
): Promise<SuffixReplies> {
  const random = `ndots-check-${asking.random.integer(0xffff_ffff).toString(36)}.${suffix}`;
  const results = [
    await askOne(asking, server, question(random, TYPE.A)),
    await askOne(asking, server, question(`${name}${suffix}`, TYPE.A)),
  ];
  const hijacked = results.find((each) => dataOfAnswer(each, TYPE.A).length > 0);
  return {
    random,
    results,
    wildcard: hijacked === undefined ? [] : dataOfAnswer(hijacked, TYPE.A),
    odd: results.find((each) => !isMissing(each)) ?? null,
  };
}

/** Describes the effect on client resolvers. */
function whoSuffers({ reply, failure }: ProbeResult): string {
  if (reply !== null) return 'musl stops searching here, while other clients wait';
  // musl does not connect its socket, so it does not notice that a port is closed.
  return failure?.startsWith('no server listens') === true
    ? 'glibc and Go fail immediately here, while musl waits until its timeout'
    : 'every client waits here until its timeout';
}

export const suffixHazards: CheckKind = checkKind({
  name: 'suffix-hazards',
  summary: 'missing names under every suffix in the search path get NXDOMAIN',
  needs: 'vip',
  parameters: {
    suffixes: optional(
      several(domainName),
      [],
      'suffixes to check instead of those in the search path',
    ),
    name: optional(domainName, 'www.example.com.', 'labels to put before each suffix'),
  },
  run({ suffixes, name }, context) {
    const [server] = context.vip;
    const all = suffixes.length > 0 ? suffixes : context.search.map((suffix) => `${suffix}.`);
    return Promise.all(
      all.map(async (suffix) => {
        const { random, results, wildcard, odd } = await askBelow(context, server!, suffix, name);
        const { state, text } = mustBeMissing(odd ?? results[0]!, random, TYPE.A);
        if (wildcard.length > 0)
          return observe(suffix, results, {
            state: 'failed',
            text: `a wildcard under ${suffix} answers ${brief(wildcard)} for any name, so external names resolve to it`,
          });
        return observe(suffix, results, {
          state,
          text: odd === null ? text : `${text}; ${whoSuffers(odd)}`,
        });
      }),
    );
  },
});
