/** Dynamic updates (RFC 2136) and signed requests (TSIG, RFC 8945) that a server rejects. */
import { OPCODE, RCODE, rcodeName } from '../../../server/wire/iana.ts';
import { printName } from '../../../server/wire/name.ts';
import { ReadError } from '../../../server/wire/reader.ts';
import { readTsig, tsigAt, type TsigFields } from '../../../server/wire/tsig.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { isFailure } from '../observe/outcomes.ts';
import type { Observations } from '../observe/observations.ts';
import { BADTIME_BYTES } from '../thresholds/errors.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { listed, sentence } from '../texts.ts';
import { excluded, unknown, type FindingKind, type FoundCause } from './finding.ts';

/** Errors in a TSIG record (RFC 8945 section 5.3). */
const TSIG_ERRORS: ReadonlyMap<number, string> = new Map([
  [16, 'BADSIG'],
  [RCODE.BADKEY, 'BADKEY'],
  [RCODE.BADTIME, 'BADTIME'],
  [RCODE.BADTRUNC, 'BADTRUNC'],
]);

interface Rejected {
  readonly exchange: SeenExchange;
  readonly isUpdate: boolean;
  /** The TSIG record of the query; null: it has none, or the capture cuts it off. */
  readonly sent: TsigFields | null;
  /** The same of the reply. */
  readonly got: TsigFields | null;
}

type Cause = Pick<FoundCause, 'title' | 'seen' | 'why' | 'fix' | 'disproved' | 'confidence'>;

export const rejectedUpdates: FindingKind = {
  code: 'ND4056',
  title: 'A name server rejects dynamic updates or signed requests',
  name: 'dynamic updates that are rejected',
  inCapture(observed, claims) {
    const all = observed.affected.flatMap(({ exchanges }) => exchanges.flatMap(rejectedBy));
    if (observed.total.asked === 0) return unknown('no query was seen');
    const byCause = Map.groupBy(
      all,
      ({ exchange, got }) => `${exchange.server.address} ${exchange.rcode} ${got?.error ?? ''}`,
    );
    const [worst] = [...byCause.values()].toSorted((one, other) => other.length - one.length);
    if (worst === undefined || worst.length < MIN_CASES)
      return excluded('no server rejects dynamic updates or signatures');
    const zones = [...new Set(worst.map(({ exchange }) => exchange.name))];
    const missing = missingIn(observed, zones);
    for (const name of [...zones, ...missing]) claims.names.add(name);
    const [first] = worst as [Rejected, ...Rejected[]];
    const { server, rcode } = first.exchange;
    const clients = [...new Set(worst.map(({ exchange }) => exchange.client.address))];
    const error = first.got === null ? '' : (TSIG_ERRORS.get(first.got.error) ?? '');
    const what = worst.every(({ isUpdate }) => isUpdate) ? 'dynamic updates' : 'signed requests';
    const cause = causeOf(first, what);
    return {
      ...cause,
      subject: server.address,
      severity: 'critical',
      seen: [
        sentence(
          `${server.address} rejected ${worst.length} ${what} from ${listed(clients)} for ${listed(zones)} with ${rcodeName(rcode)}${error === '' ? '' : ` and the TSIG error ${error}`}`,
        ),
        ...cause.seen,
        missing.length > 0 &&
          sentence(
            `Names in the zone that were queried are missing, probably because of this: ${listed(missing)}`,
          ),
      ],
      prove: `the log of ${server.address} (for BIND: named, category update-security) names the reason for each request`,
      exchanges: worst.map(({ exchange }) => exchange),
      affected: clients,
    };
  },
};

function causeOf({ exchange, sent, got }: Rejected, what: string): Cause {
  const client = exchange.client.address;
  const server = exchange.server.address;
  const key = got === null ? '' : printName(got.key);
  switch (got?.error) {
    case RCODE.BADTIME:
      return {
        title: `A name server rejects ${what} because the clocks differ (TSIG BADTIME)`,
        confidence: 0.97,
        seen: clockTexts(exchange, sent, got),
        why: 'A TSIG signature contains the time at which the client made it. If the server’s clock differs from it by more than the allowed difference (fudge), the server answers NOTAUTH with BADTIME and changes nothing. The key itself is right, because the server checks it first.',
        fix: [
          `Synchronize the clocks of ${client} (its node) and ${server} by NTP (timedatectl, chronyc tracking), and correct the one that is wrong.`,
          'Do not raise the allowed difference instead, since it protects against repeated old requests.',
        ],
        disproved:
          'date -u shows the same time on both machines (then a proxy delays the requests)',
      };
    case undefined:
    case 0:
      return {
        title: `A name server rejects ${what} with ${rcodeName(exchange.rcode)}`,
        confidence: 0.85,
        seen: [],
        why: 'NOTAUTH means that the server is not authoritative for the zone, or that the signature (TSIG) is not accepted. REFUSED means that the server does not allow this client or key to change the zone. Nothing in the zone is changed.',
        fix: [
          `Send the changes to the zone’s primary server, and check that ${server} allows them for this key and client (BIND: allow-update, update-policy).`,
          'If requests are signed, compare the key’s name, algorithm and secret, and the clocks, on both sides.',
        ],
        disproved: 'the same request succeeds when it is sent to the zone’s primary server',
      };
    default:
      return {
        title: `A name server rejects the signatures of ${what} (TSIG ${TSIG_ERRORS.get(got!.error) ?? rcodeName(got!.error)})`,
        confidence: 0.95,
        seen: [sentence(`The requests are signed with the key ${key}`)],
        why: 'BADKEY means that the server does not know the key (by its name and algorithm). BADSIG means that it knows the name but has another secret, or that the message was changed on the way. Nothing in the zone is changed.',
        fix: [
          sentence(
            `Give ${client} and ${server} the same secret, algorithm and name for the key ${key}`,
          ),
        ],
        disproved: 'both sides have the same key (then something on the way changes the messages)',
      };
  }
}

/** The times in the records, and the difference between them. */
function clockTexts(
  { sentMs }: SeenExchange,
  sent: TsigFields | null,
  { other, signedAt, fudge, key }: TsigFields,
): Cause['seen'] {
  const clientAt = sent?.signedAt ?? signedAt;
  const allowed = sent?.fudge ?? fudge;
  const isTold = other.length === BADTIME_BYTES;
  const serverAt = isTold ? other.reduce((sum, byte) => sum * 256 + byte, 0) : sentMs / 1000;
  const ahead = Math.round(clientAt - serverAt);
  const captureAhead = Math.abs(clientAt - sentMs / 1000) <= allowed;
  const time = (seconds: number): string =>
    new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' ');
  return [
    `The client signed with the key ${printName(key)} at ${time(clientAt)}, when it was ${time(serverAt)} ${isTold ? 'at the server, as its reply says' : 'by the clock of this capture'}. The client’s clock is ${Math.abs(ahead)} s ${ahead < 0 ? 'behind' : 'ahead'}, and ${allowed} s are allowed.`,
    isTold &&
      (captureAhead
        ? 'The clock of this capture agrees with the client, so the server’s clock is probably wrong (unless both run on one machine).'
        : 'The clock of this capture agrees with the server rather than the client, so the client’s clock is probably wrong.'),
  ];
}

/** Names in these zones that are never found. */
function missingIn({ names: { list } }: Observations, zones: readonly string[]): readonly string[] {
  const missing = new Set<string>();
  const found = new Set<string>();
  for (const { name, outcomes } of list) {
    if (!zones.some((zone) => isBelow(name, zone))) continue;
    if (outcomes.nxdomain > 0) missing.add(name);
    if (outcomes.found + outcomes.nodata > 0) found.add(name);
  }
  return [...missing].filter((name) => !found.has(name));
}

function rejectedBy(exchange: SeenExchange): Rejected | [] {
  const { query, reply, logged } = exchange;
  if (logged !== undefined || reply === null || !isFailure(exchange)) return [];
  const isUpdate = query.length > 2 && ((query[2]! >> 3) & 0xf) === OPCODE.UPDATE;
  if (!isUpdate && exchange.rcode !== RCODE.NOTAUTH) return [];
  const got = signatureOf(reply);
  // Some servers answer NOTAUTH to an ordinary query.
  if (!isUpdate && (got === null || got.error === 0)) return [];
  return { exchange, isUpdate, sent: signatureOf(query), got };
}

/** The TSIG record of a message; null: there is none, or it cannot be read. */
function signatureOf(message: Uint8Array): TsigFields | null {
  try {
    const at = tsigAt(message);
    return at < 0 ? null : readTsig(message, at);
  } catch (error) {
    if (!(error instanceof ReadError)) throw error;
    return null;
  }
}
