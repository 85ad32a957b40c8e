/** The options of `rrl`: those of the external CoreDNS plugin with this name, and those of BIND. */
import type { Net } from '../../base/ip.ts';
import { limit } from '../../base/limits.ts';
import { zones, type Position } from '../../corefile/positions.ts';
import { flag, list, setting, type PropertySchema } from '../../corefile/properties.ts';
import { directive, type Options, type Syntax } from '../../corefile/syntax.ts';
import { decimal, integer, net } from '../../corefile/word-values.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { clientPrefixSettings } from '../../engine/contract/client-prefix.ts';

/** Number of accounts, each of which uses 33 bytes. */
const tableLimit = limit({ default: 20_000, min: 64, max: 5_000_000 });
const windowLimit = limit({ default: 15, min: 1, max: 3600 });
/** BIND's limit; only an attacker would reach it. */
const rate = decimal('ALLOWANCE', { min: 0, max: 1_000_000 });

const args: { zones: Position<readonly string[]> } = {
  zones: zones({
    help: 'zones whose replies are limited',
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
    help: 'maximum time that a client stays limited after a flood',
  }),
  ...clientPrefixSettings(['ipv4-prefix-length', 'ipv6-prefix-length'], [24, 56]),
  responses: setting('responses-per-second', rate, {
    default: 0,
    help: 'answers with records, per name and type; 0: no limit',
  }),
  nodata: setting('nodata-per-second', rate, {
    help: 'replies without data, per name; default: the value of `responses-per-second`',
  }),
  nxdomains: setting('nxdomains-per-second', rate, {
    help: 'NXDOMAIN, per zone; default: the value of `responses-per-second`',
  }),
  referrals: setting('referrals-per-second', rate, {
    help: 'referrals, per zone; default: the value of `responses-per-second`',
  }),
  errors: setting('errors-per-second', rate, {
    help: 'SERVFAIL, REFUSED and other failures, for all names; default: the value of `responses-per-second`',
  }),
  all: setting('all-per-second', rate, {
    default: 0,
    help: 'all replies together; replies above the limit are dropped without slip; 0: no limit',
  }),
  requests: setting('requests-per-second', rate, {
    default: 0,
    help: 'queries; queries above the limit are dropped before they are processed; 0: no limit',
  }),
  slip: setting('slip-ratio', integer('N', { min: 0, max: 10 }), {
    default: 2,
    help: 'send every Nth limited reply without records and with TC, so that real clients retry over TCP; 0: none, 1: all',
  }),
  exempt: list('exempt-clients', net('NET'), { help: 'networks that are never limited' }),
  table: setting('max-table-size', integer('SIZE', tableLimit), {
    default: tableLimit.default,
    help: 'number of accounts; the least recently used one is evicted',
  }),
  reportOnly: flag('report-only', {
    help: 'do not limit anything; only count and log what would be limited',
  }),
};

export const syntax: Syntax<typeof args, typeof properties, 'once'> = directive({
  name: 'rrl',
  summary: 'limits the rate of identical replies sent to one network over UDP',
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
          pluginRemark('rrl', at, 'nothing is limited because no allowance is set', {
            remedy: 'Write, for example: responses-per-second 10',
          }),
        ],
});

export type RrlOptions = Options<typeof syntax>;
