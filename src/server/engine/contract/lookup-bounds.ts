/** Limits on the lookups made for one reply, and the reply to lookups that exceed them. */
import { EDE, RCODE } from '../../wire/iana.ts';
import { failure, type Reply } from '../../wire/reply.ts';

/** Maximum nesting of internal lookups (CNAME targets). */
export const DEPTH_MAX = 20;

/** Maximum number of internal lookups for one query. It is needed because each alias may lead to several others. */
export const LOOKUPS_MAX = 200;

const endless = `aliases continue more than ${DEPTH_MAX} times, or to more than ${LOOKUPS_MAX} lookups for one query`;

/** The reply to an internal lookup that exceeds the limits. */
export const endlessAliases: Reply = failure(RCODE.SERVFAIL, '', new Error(endless), [
  { code: EDE.OTHER, text: endless },
]);

/** Returns true if a reply reports that there were too many aliases, either here or in an earlier lookup. */
export function isEndless({ rcode, errors }: Reply): boolean {
  return rcode === RCODE.SERVFAIL && errors !== null && errors.some(({ text }) => text === endless);
}
