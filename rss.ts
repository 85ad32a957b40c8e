const m = () => (process.memoryUsage().rss / 1e6).toFixed(1);
console.log('start', m());
import { libc } from '/work/main/src/linux/libc.ts';
console.log('import', m());
libc(); console.log('libc', m());
const { packetLoop } = await import('/work/main/src/linux/packet-loop.ts'); packetLoop(); console.log('loop', m());
