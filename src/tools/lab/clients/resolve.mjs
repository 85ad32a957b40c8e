// Calls dns.resolve4 and dns.resolve6 at once (c-ares): NAME FAMILY COUNT. Prints one line of JSON per lookup.
import { promises as dns } from 'node:dns';

const [name, family, count] = process.argv.slice(2);
for (let i = 0; i < Number(count); i++) {
  const start = performance.now();
  const asked = [];
  if (family !== '6') asked.push(dns.resolve4(name));
  if (family !== '4') asked.push(dns.resolve6(name));
  const settled = await Promise.allSettled(asked);
  const addrs = settled.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  const failure = settled.find((one) => one.status === 'rejected');
  const good = settled.some((one) => one.status === 'fulfilled');
  const err = good || failure === undefined ? '' : failure.reason.code;
  process.stdout.write(`${JSON.stringify({ err, ms: performance.now() - start, addrs })}\n`);
}
