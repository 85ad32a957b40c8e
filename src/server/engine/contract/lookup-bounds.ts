/** The bounds of lookups that are made for one reply, and the reply to lookups beyond them. */
import { EDE, RCODE } from '../../wire/iana.ts';
import { failure, type Reply } from '../../wire/reply.ts';

/** Maximum depth of internal lookups (CNAME targets) that lead to each other. */
export const DEPTH_MAX = 20;

/** Maximum number of internal lookups for one query: each alias may lead to several others. */
export const LOOKUPS_MAX = 200;

const endless = `aliases continue more than ${DEPTH_MAX} times, or to more than ${LOOKUPS_MAX} lookups for one query`;

/** The reply to an internal lookup too many. */
export const endlessAliases: Reply = failure(RCODE.SERVFAIL, '', new Error(endless), [
  { code: EDE.OTHER, text: endless },
]);

/** True if a reply says that aliases led on too often, here or at a lookup before. */
export function isEndless({ rcode, errors }: Reply): boolean {
  return rcode === RCODE.SERVFAIL && errors !== null && errors.some(({ text }) => text === endless);
}
