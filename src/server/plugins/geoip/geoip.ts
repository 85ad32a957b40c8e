/** `geoip`: adds clients' locations to the metadata. */
import { printAddress } from '../../base/ip.ts';
import { Problem } from '../../base/problem.ts';
import { required } from '../../corefile/positions.ts';
import { chained, flag } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { word } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { metadataProviders } from '../../engine/contract/ports.ts';
import { OPTION } from '../../wire/iana.ts';
import { findOption } from '../../wire/edns-options.ts';
import type { Query } from '../../transport/query.ts';
import { Database, DatabaseError, readDatabase } from './database.ts';
import { noteCity, noteNetwork } from './notes.ts';

const syntax = directive({
  name: 'geoip',
  summary: "looks up clients' locations in an address database and adds them as metadata",
  repeat: 'once',
  args: { file: required(word('DBFILE'), { help: 'address database in MaxMind format (mmdb)' }) },
  properties: {
    subnet: chained(
      flag('edns-subnet', {
        help: "use the address in the query (EDNS Client Subnet, RFC 7871) instead of the client's address",
      }),
    ),
  },
});

/** Adds a database's information about the client to the metadata, for plugins such as log, view and rewrite. */
export const geoip: Plugin = definePlugin({
  syntax,
  control(options, context) {
    const path = context.path(options.file);
    try {
      const bytes = readDatabase(path);
      void new Database(bytes);
      context.onJoin(() => [bytes]);
    } catch (error) {
      throw unusable(path, error);
    }
  },
  setup(options, context, next) {
    let database: Database | null = null;
    const failures = context.metrics.counter(
      'ndots_geoip_failures_total',
      'Queries whose client could not be looked up because the database is corrupt.',
    );
    context.onMessage((message) => {
      database = new Database(message as Uint8Array<SharedArrayBuffer>);
    });
    context.offer(metadataProviders, (query, notes) => {
      if (database === null) return;
      const address = (options.subnet ? subnetOf(query) : null) ?? query.client;
      try {
        const found = database.lookup(address) ?? {};
        if (database.provides.city) noteCity(found, notes);
        if (database.provides.asn) noteNetwork(found, notes);
      } catch (error) {
        if (!(error instanceof DatabaseError)) throw error;
        failures.add(1);
        context.log.debug(`Looking up ${address} failed: ${error.message}`);
      }
    });
    return next;
  },
});

/** Returns the address in the query's Client Subnet option, padded with zeros, or null if there is none. */
function subnetOf({ bytes, optionsStart, optionsEnd }: Query): string | null {
  const option = findOption(bytes, optionsStart, optionsEnd, OPTION.ECS);
  if (option === null || option.length < 4 || option[0] !== 0) return null;
  const size = option[1] === 1 ? 4 : option[1] === 2 ? 16 : 0;
  if (size === 0 || option.length > 4 + size) return null;
  const address = new Uint8Array(size);
  address.set(option.subarray(4));
  return printAddress(address);
}

function unusable(path: string, error: unknown): Problem {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!(error instanceof DatabaseError) && code === undefined) throw error;
  const missing = code === 'ENOENT';
  const text = missing ? `open ${path}: no such file or directory` : message;
  const supported = message.includes('supported schema');
  return new Problem({
    code: 'geoip-database',
    text: supported ? text : `failed to open database file: ${text}`,
    hint:
      error instanceof DatabaseError
        ? `${path} must be a database in MaxMind format (mmdb) with locations or networks.`
        : undefined,
    remedy: missing
      ? `Check the path: ls -l ${path}`
      : 'Use GeoLite2-City, GeoLite2-Country, GeoLite2-ASN or a similar one, and download it again if it is truncated.',
    cause: error,
  });
}
