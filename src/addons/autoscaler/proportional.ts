/**
 * Computes the number of replicas from the cluster's size, as cluster-proportional-autoscaler does from its ConfigMap
 * (`linear`, `ladder`). The same ConfigMap gives the same numbers.
 */
import { isObject, type JsonObject } from '../../server/base/json-object.ts';
import { Problem } from '../../server/base/problem.ts';

/** The cluster's size: all nodes and their CPUs, and those where pods can be scheduled. */
export interface ClusterSize {
  readonly nodes: number;
  readonly cores: number;
  readonly schedulableNodes: number;
  readonly schedulableCores: number;
}

/** The rule in a ConfigMap, and which part of it is decisive. */
export interface Sizing {
  readonly mode: 'linear' | 'ladder';
  replicas(size: ClusterSize): SizedReplicas;
}

/** The number of replicas and the reason for it: `16 nodes per replica`. */
export interface SizedReplicas {
  readonly replicas: number;
  readonly because: string;
}

/**
 * Parses a ConfigMap's data, which is one key, `linear` or `ladder`, with a JSON value.
 * @param where for messages: `ConfigMap kube-system/dns-autoscaler`
 * @throws Problem
 */
export function readSizing(data: Readonly<Record<string, string>>, where: string): Sizing {
  const [mode, ...more] = Object.keys(data);
  if (mode === undefined || more.length > 0 || (mode !== 'linear' && mode !== 'ladder')) {
    const found = mode === undefined ? 'nothing' : [mode, ...more].join(', ');
    throw wrong(where, `has ${found}, but must have either linear or ladder`);
  }
  let read: unknown;
  try {
    read = JSON.parse(data[mode]!);
  } catch (error) {
    throw wrong(where, `has invalid JSON in "${mode}": ${(error as Error).message}`);
  }
  if (!isObject(read)) throw wrong(where, `has no JSON object in "${mode}"`);
  return mode === 'linear' ? linear(read, where) : ladder(read, where);
}

function linear(params: JsonObject, where: string): Sizing {
  const number = (key: string): number => numberOf(params[key], key, where);
  const coresPerReplica = number('coresPerReplica');
  const nodesPerReplica = number('nodesPerReplica');
  const min = countOf(params['min'], 'min', where) || 1;
  const max = countOf(params['max'], 'max', where);
  if (coresPerReplica === 0 && nodesPerReplica === 0)
    throw wrong(where, 'has neither coresPerReplica nor nodesPerReplica');
  if (max !== 0 && max < min) throw wrong(where, `has max ${max}, which is less than min ${min}`);
  const share = (count: number, each: number, what: string): SizedReplicas => {
    if (each === 0) return { replicas: 1, because: 'one at least' };
    const wanted = Math.ceil(count / each);
    const replicas = Math.max(min, max === 0 ? wanted : Math.min(max, wanted));
    if (replicas > COUNT_MAX) throw wrong(where, `asks for ${replicas} replicas`);
    if (replicas < wanted) return { replicas, because: `max ${max}` };
    if (replicas > wanted) return { replicas, because: `min ${min}` };
    return { replicas, because: `${each} ${what} per replica` };
  };
  return {
    mode: 'linear',
    replicas(size) {
      const { nodes, cores } = counted(size, params);
      let byNodes = share(nodes, nodesPerReplica, 'nodes');
      if (params['preventSinglePointFailure'] === true && nodes > 1 && byNodes.replicas < 2)
        byNodes = { replicas: 2, because: 'no single point of failure' };
      const byCores = share(cores, coresPerReplica, 'processors');
      return byCores.replicas > byNodes.replicas ? byCores : byNodes;
    },
  };
}

function ladder(params: JsonObject, where: string): Sizing {
  const byCores = rungs(params['coresToReplicas'], 'coresToReplicas', where);
  const byNodes = rungs(params['nodesToReplicas'], 'nodesToReplicas', where);
  // Without any rungs, replicas stay unchanged, because a misspelled key must not mean zero.
  if (byCores.length + byNodes.length === 0)
    throw wrong(where, 'has neither coresToReplicas nor nodesToReplicas');
  return {
    mode: 'ladder',
    replicas(size) {
      const { nodes, cores } = counted(size, params);
      const ofCores = rungOf(byCores, cores, 'processors');
      const ofNodes = rungOf(byNodes, nodes, 'nodes');
      return ofCores.replicas > ofNodes.replicas ? ofCores : ofNodes;
    },
  };
}

type Rung = readonly [from: number, replicas: number];

function rungs(given: unknown, key: string, where: string): readonly Rung[] {
  if (given === undefined || given === null) return [];
  if (!Array.isArray(given)) throw wrong(where, `has no list of pairs in ${key}`);
  return given
    .map((pair): Rung => {
      if (!Array.isArray(pair) || pair.length !== 2)
        throw wrong(where, `has ${JSON.stringify(pair)} in ${key}, but must have [from, replicas]`);
      return [numberOf(pair[0], key, where), countOf(pair[1], key, where)];
    })
    .toSorted(([one], [other]) => one - other);
}

/** Returns the last rung that has been reached, or else the first one. */
function rungOf(all: readonly Rung[], count: number, what: string): SizedReplicas {
  const rung = all.findLast(([from]) => from <= count) ?? all[0];
  if (rung === undefined) return { replicas: 0, because: `no rung for ${what}` };
  return { replicas: rung[1], because: `from ${rung[0]} ${what}` };
}

function counted(size: ClusterSize, params: JsonObject): { nodes: number; cores: number } {
  return params['includeUnschedulableNodes'] === true
    ? { nodes: size.nodes, cores: size.cores }
    : { nodes: size.schedulableNodes, cores: size.schedulableCores };
}

function numberOf(given: unknown, key: string, where: string): number {
  if (given === undefined || given === null) return 0;
  if (typeof given !== 'number' || !Number.isFinite(given)) {
    const shown = typeof given === 'number' ? String(given) : JSON.stringify(given);
    throw wrong(where, `has ${shown} in ${key}, which is not a number`);
  }
  if (given < 0) throw wrong(where, `has ${given} in ${key}, which is less than 0`);
  return given;
}

/** The API's maximum number of replicas: 32-bit integers. */
const COUNT_MAX = 2 ** 31 - 1;

function countOf(given: unknown, key: string, where: string): number {
  if (typeof given === 'number' && !Number.isInteger(given))
    throw wrong(where, `has ${given} in ${key}, which is not a whole number`);
  const count = numberOf(given, key, where);
  if (count > COUNT_MAX)
    throw wrong(where, `has ${count} in ${key}, which is more than ${COUNT_MAX}`);
  return count;
}

function wrong(where: string, text: string): Problem {
  return new Problem({
    code: 'sizing',
    text: `${where} ${text}`,
    remedy:
      'Example: linear: {"coresPerReplica": 256, "nodesPerReplica": 16, "preventSinglePointFailure": true}',
  });
}
