import koffi from '/work/main/node_modules/koffi/index.js';
const m = () => (process.memoryUsage().rss / 1e6).toFixed(1);
console.log('koffi', m(), JSON.stringify(koffi.config()));
if (process.argv[2]) koffi.config({sync_stack_size: 65536*2, sync_heap_size: 65536*2});
const lib = koffi.load(null); console.log('load', m()); const f = lib.func('getppid','int',[]); console.log('func', m()); f(); console.log('call', m());
