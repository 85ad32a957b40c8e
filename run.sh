#!/bin/bash
# run.sh TREE OUT
ip link set lo up
unbound -c /tmp/fw/unbound.conf & U=$!
cd $1
NODE=node_modules/node/bin/node; [ -x $NODE ] || NODE=$(ls node_modules/.bin/node)
taskset -c 0 $PWD/node_modules/.bin/node --perf-basic-prof --perf-prof-annotate-wasm dist/x 2>/dev/null
head -5 bin/ndots >/dev/null
NODE_OPTIONS="--perf-basic-prof" taskset -c 0 bin/ndots serve -conf /tmp/fw/Corefile -workers 1 > /tmp/fw/log.$2 2>&1 & S=$!
sleep 3
taskset -c 1 dnsperf -s 127.0.0.1 -p 5410 -d /tmp/fw/names -l 4 -q 200 -c 4 -T 1 >/dev/null 2>&1
perf record -g -F 2500 -o /tmp/fw/perf.$2 -p $S -- sleep 9 >/dev/null 2>&1 &
taskset -c 1 dnsperf -s 127.0.0.1 -p 5410 -d /tmp/fw/names -l 8 -q 200 -c 4 -T 1 2>&1 | grep -E "Queries (completed|lost|per)"
wait %3
kill $S; kill $U; wait
