/**
 * A busy neighbour that spends half of the time reading 64 MiB of memory repeatedly, on any CPU. It ends when its
 * parent does.
 */
const words = new Float64Array(8 << 20).fill(1);
const asleep = new Int32Array(new SharedArrayBuffer(4));
const parent = process.ppid;
for (let at = 0, sum = 0; process.ppid === parent && sum >= 0;) {
  const endMs = performance.now() + 5;
  while (performance.now() < endMs) {
    for (let n = 0; n < 4096; n++, at = (at + 8) % words.length) sum += words[at]!;
    if (sum > 1e12) sum = 0;
  }
  Atomics.wait(asleep, 0, 0, 5);
}
