/** Limits of the data that is stored about a capture. */
import { CLIENTS_MAX } from './client-list.ts';

/** More of any of these are summed up, and not looked at one by one. */
export const MOST = {
  servers: 2000,
  clients: CLIENTS_MAX as number,
  flows: 20_000,
  names: 16_000,
  losses: 10_000,
  lookups: 2000,
  events: 5000,
  addresses: 2000,
  replays: 50,
  rates: 100,
  /** Queries of each of these to one server that the bucket replay uses. */
  ofClient: 4000,
  searched: 200,
  timed: 100,
} as const;
