/**
 * What `rrl` may say: the words of the plugin of that name that people compile into CoreDNS, and of
 * BIND.
 */
import type { Net } from '../../base/ip.ts';
import { limit } from '../../base/limits.ts';
import { zones, type Position } from '../../corefile/positions.ts';
import { flag, list, setting, type PropertySchema } from '../../corefile/properties.ts';
import { directive, type Options, type Syntax } from '../../corefile/syntax.ts';
import { decimal, integer, net } from '../../corefile/word-values.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { clientPrefixSettings } from '../../engine/contract/client-prefix.ts';

/** Accounts: 33 bytes each. */
const tableLimit = limit({ default: 20_000, min: 64, max: 5_000_000 });
const windowLimit = limit({ default: 15, min: 1, max: 3600 });
/** BIND's limit; only an attacker would reach it. */
const rate = decimal('ALLOWANCE', { min: 0, max: 1_000_000 });

const args: { zones: Position<readonly string[]> } = {
  zones: zones({
    help: 'names whose replies are limited',
    noNumbers: 'Write: rrl { responses-per-second 20 }',
  }),
};

const properties: {
  windowSeconds: PropertySchema<number>;
  bits4: PropertySchema<number>;
  bits6: PropertySchema<number>;
  responses: PropertySchema<number>;
  nodata: PropertySchema<number | null>;
  nxdomains: PropertySchema<number | null>;
  referrals: PropertySchema<number | null>;
  errors: PropertySchema<number | null>;
  all: PropertySchema<number>;
  requests: PropertySchema<number>;
  slip: PropertySchema<number>;
  exempt: PropertySchema<readonly Net[]>;
  table: PropertySchema<number>;
  reportOnly: PropertySchema<boolean>;
} = {
  windowSeconds: setting('window', integer('SECONDS', windowLimit), {
    default: windowLimit.default,
    help: 'how long a client that asks far too much goes on being limited after it has stopped, at most',
  }),
  ...clientPrefixSettings(['ipv4-prefix-length', 'ipv6-prefix-length'], [24, 56]),
  responses: setting('responses-per-second', rate, {
    default: 0,
    help: 'answers with records, of one name and type; 0: any number',
  }),
  nodata: setting('nodata-per-second', rate, {
    help: 'replies without data, of one name; as `responses-per-second` if not said',
  }),
  nxdomains: setting('nxdomains-per-second', rate, {
    help: 'NXDOMAIN, of one zone; as `responses-per-second` if not said',
  }),
  referrals: setting('referrals-per-second', rate, {
    help: 'referrals, of one zone; as `responses-per-second` if not said',
  }),
  errors: setting('errors-per-second', rate, {
    help: 'SERVFAIL, REFUSED and other failures, whatever was asked; as `responses-per-second` if not said',
  }),
  all: setting('all-per-second', rate, {
    default: 0,
    help: 'all replies together; what exceeds it is dropped without slip; 0: any number',
  }),
  requests: setting('requests-per-second', rate, {
    default: 0,
    help: 'queries that are looked at at all; what exceeds it is dropped before it costs anything; 0: any number',
  }),
  slip: setting('slip-ratio', integer('N', { min: 0, max: 10 }), {
    default: 2,
    help: 'every Nth limited reply is sent without records and with TC, so that real clients ask over TCP; 0: none, 1: all',
  }),
  exempt: list('exempt-clients', net('NET'), { help: 'networks that are never limited' }),
  table: setting('max-table-size', integer('SIZE', tableLimit), {
    default: tableLimit.default,
    help: 'accounts at a time; when there are more, the one that was used longest ago goes',
  }),
  reportOnly: flag('report-only', { help: 'limits nothing: only counts and logs what would be' }),
};

/** The directive `rrl`. */
export const syntax: Syntax<typeof args, typeof properties, 'once'> = directive({
  name: 'rrl',
  summary: 'limits how often one network is sent the same reply over UDP',
  repeat: 'once',
  args,
  properties,
  warn: (options, at) =>
    [
      options.responses,
      options.nodata,
      options.nxdomains,
      options.referrals,
      options.errors,
      options.all,
      options.requests,
    ].some((allowance) => allowance !== null && allowance > 0)
      ? []
      : [
          pluginRemark('rrl', at, 'nothing is limited: no allowance is set', {
            remedy: 'Write, for example: responses-per-second 10',
          }),
        ],
});

/** What one `rrl` says. */
export type RrlOptions = Options<typeof syntax>;
