/** `ndots etcd`: writes, shows and removes SkyDNS records in etcd. */
import { sleep, systemClock } from '../../../server/base/clock.ts';
import { parseAddress } from '../../../server/base/ip.ts';
import { Problem } from '../../../server/base/problem.ts';
import { EtcdClient, type EtcdAccess } from '../../../server/etcd/client.ts';
import { isSecure, printEndpoint } from '../../../server/etcd/endpoint.ts';
import { EtcdFailure } from '../../../server/etcd/etcd-failure.ts';
import {
  prefixRange,
  type KeyRange,
  type KeyValue,
  type EtcdLease,
} from '../../../server/etcd/messages.ts';
import { nameOf, pathOf } from '../../../server/plugins/etcd/path.ts';
import { packService } from '../../../server/plugins/etcd/skydns-service.ts';
import { foldName, NameError, parseName, printName } from '../../../server/wire/name.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { parseEtcdOptions, type EtcdVerbOptions } from './etcd-options.ts';
import { usage } from '../option-values.ts';
import { reverseName } from '../query/query-options.ts';
import { untilSignal } from '../until-signal.ts';

export const etcd: Command = {
  name: 'etcd',
  async run(words, io) {
    const options = parseEtcdOptions(words, io.env);
    tellUnused(options.access, io);
    const client = new EtcdClient({ ...options.access, clock: systemClock });
    try {
      return await { put, get: show, list: show, rm: remove }[options.action](client, options, io);
    } catch (error) {
      if (!(error instanceof EtcdFailure)) throw error;
      const remedy = remedyOf(error, options);
      throw new Problem({ code: 'etcd', text: error.message, remedy, cause: error });
    } finally {
      client.close();
    }
  },
};

/** Suggests a fix, because the error's own text is also meant for Corefiles. */
function remedyOf(
  { kind, advice }: EtcdFailure,
  { action, prefix, access }: EtcdVerbOptions,
): string {
  const isRead = action === 'get' || action === 'list';
  if (kind === 'tls')
    return 'Check the --cacert, --cert and --key files: all must be PEM, and the key must match the certificate';
  if (kind === 'credentials' && access.credentials === null)
    return 'etcd requires a user; use --user and --password';
  if (kind === 'forbidden')
    return `grant the user permission to ${isRead ? 'read' : 'read and write'} the keys: etcdctl role grant-permission ROLE ${isRead ? 'read' : 'readwrite'} ${prefix}/ --prefix`;
  return advice === ''
    ? 'Give the endpoints with --endpoints, or run: etcdctl endpoint status'
    : advice;
}

/** Warns about certificate files that have no effect, since users would think they were protected. */
function tellUnused({ endpoints, tls }: EtcdAccess, io: Io): void {
  if (tls === null) return;
  const plain = endpoints.filter((endpoint) => !isSecure(endpoint, tls));
  if (plain.length === 0) return;
  io.err(
    `ndots etcd: ${plain.map(printEndpoint).join(', ')} does not use TLS, so --cacert, --cert and --key are ignored there (they apply to https:// endpoints)\n`,
  );
}

async function put(client: EtcdClient, options: EtcdVerbOptions, io: Io): Promise<number> {
  const key = keyOf(options.names[0]!, options);
  const value = Buffer.from(JSON.stringify(options.fields));
  const read = packService(value, 0n);
  const host = String(options.fields['host'] ?? '');
  if (typeof read !== 'string') throw usage(`servers would ignore this record: ${read.detail}`);
  // Any name can be served, but these are errors. No top-level domain is numeric (RFC 3696, section 2).
  if (/\s|(^|\.)\d+\.?$/.test(host) && parseAddress(host) === null)
    throw usage(`the host ${JSON.stringify(host)} is neither an address nor a host name`);
  if (options.leaseSeconds === null) {
    await client.put(key, value);
    io.out(`${key.toString()} ${value.toString()}\n`);
    return EXIT.ok;
  }
  const lease = await client.grantLease(options.leaseSeconds);
  await client.put(key, value, lease.id);
  io.out(`${key.toString()} ${value.toString()} (lease of ${lease.ttl} s)\n`);
  if (options.keepAlive) return keepAlive(client, { key, value, lease }, io);
  return EXIT.ok;
}

/** Maintains a record and its lease until a signal arrives, and then removes the record. */
async function keepAlive(
  client: EtcdClient,
  {
    key,
    value,
    lease,
  }: { readonly key: Buffer; readonly value: Buffer; readonly lease: EtcdLease },
  io: Io,
): Promise<number> {
  const ended = untilSignal();
  let { id } = lease;
  for (;;) {
    // Renewing after a third of the lease leaves time for two more attempts.
    await sleep(systemClock, (lease.ttl * 1000) / 3, ended);
    if (ended.aborted) break;
    try {
      if ((await client.keepLeaseAlive(id)).ttl > 0) continue;
      // etcd was unavailable for longer than the lease.
      ({ id } = await client.grantLease(lease.ttl));
      await client.put(key, value, id);
      io.err('ndots etcd: the lease had expired, so the record was written again\n');
    } catch (error) {
      if (!(error instanceof EtcdFailure)) throw error;
      io.err(`ndots etcd: ${error.message}; trying again\n`);
    }
  }
  await client.delete({ key, end: null });
  return EXIT.interrupted;
}

async function show(client: EtcdClient, options: EtcdVerbOptions, io: Io): Promise<number> {
  const { action, names, prefix, output } = options;
  const found: KeyValue[] = [];
  const missing: string[] = [];
  for (const name of names.length === 0 ? ['.'] : names) {
    const before = found.length;
    const key = keyOf(name, options);
    if (action === 'get' || key.length > prefix.length)
      await readAll(client, { key, end: null }, found);
    if (action === 'list') await readAll(client, below(key), found);
    if (found.length === before) missing.push(name);
  }
  if (output === 'json') {
    const rows = found.map((kv) => ({
      name: nameFor(kv, prefix),
      key: kv.key.toString(),
      value: parsed(kv.value),
      ...(kv.lease === 0n ? {} : { lease: kv.lease.toString(16) }),
    }));
    io.out(`${JSON.stringify(rows, null, 2)}\n`);
  } else {
    const rows = found.map((kv) => [nameFor(kv, prefix), kv.value.toString()] as const);
    const width = rows.reduce((most, [name]) => Math.max(most, name.length), 0);
    for (const [name, value] of rows) io.out(`${name.padEnd(width)}  ${value}\n`);
  }
  if (action === 'get') return tellMissing(client, options, missing, io);
  for (const name of missing) io.err(`ndots etcd: there is no record at or under ${name}\n`);
  return missing.length === 0 ? EXIT.ok : EXIT.no;
}

async function remove(client: EtcdClient, options: EtcdVerbOptions, io: Io): Promise<number> {
  let removed = 0;
  const missing: string[] = [];
  for (const name of options.names) {
    const before = removed;
    const key = keyOf(name, options);
    removed += await client.delete({ key, end: null });
    if (options.below) removed += await client.delete(below(key));
    if (removed === before) missing.push(name);
  }
  if (removed > 0) io.out(`${removed} ${removed === 1 ? 'record' : 'records'} removed\n`);
  return tellMissing(client, options, missing, io);
}

/**
 * Reports names that have no record, with a hint if their subdomains do.
 * @returns the exit code
 */
async function tellMissing(
  client: EtcdClient,
  options: EtcdVerbOptions,
  missing: readonly string[],
  io: Io,
): Promise<number> {
  const advice =
    options.action === 'get'
      ? 'ndots etcd list shows the names under it'
      : '--below removes the names under it';
  for (const name of missing) {
    const { kvs } = await client.range({ ...below(keyOf(name, options)), limit: 1 });
    const hint = kvs.length > 0 ? ` itself; ${advice}` : '';
    io.err(`ndots etcd: there is no record ${name}${hint}\n`);
  }
  return missing.length === 0 ? EXIT.ok : EXIT.no;
}

/** Keys per page. */
const PAGE = 500;

async function readAll(client: EtcdClient, range: KeyRange, found: KeyValue[]): Promise<void> {
  for (let { key } = range; ;) {
    const { kvs, more } = await client.range({ key, end: range.end, limit: PAGE });
    // Copied, because keys and values are views into the receive buffer.
    found.push(
      ...kvs.map((kv) => ({ ...kv, key: Buffer.from(kv.key), value: Buffer.from(kv.value) })),
    );
    const last = kvs.at(-1);
    if (!more || last === undefined) return;
    key = Buffer.concat([last.key, Buffer.of(0)]);
  }
}

function below(key: Buffer): KeyRange {
  return prefixRange(Buffer.concat([key, Buffer.from('/')]));
}

function keyOf(name: string, { prefix }: EtcdVerbOptions): Buffer {
  const text = parseAddress(name) === null ? name : reverseName(name);
  try {
    return Buffer.from(prefix + pathOf(foldName(parseName(text))).path, 'latin1');
  } catch (error) {
    if (!(error instanceof NameError)) throw error;
    throw usage(error.message);
  }
}

function nameFor({ key }: KeyValue, prefix: string): string {
  const name = nameOf(key.toString('latin1').slice(prefix.length));
  return name === null ? key.toString() : printName(name);
}

function parsed(value: Buffer): unknown {
  const text = value.toString();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
