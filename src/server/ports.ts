import type { Query } from '../wire/query.ts';
import { definePort } from './plugin.ts';

/** Writes what a plugin knows about a query before it is answered: label (`kubernetes/client-namespace`) → value. */
export type MetadataProvider = (query: Query, notes: Map<string, string>) => void;

/** Offered by plugins that know something; asked by `metadata`, in the order of the chain backwards. */
export const metadataProviders = definePort<MetadataProvider>('metadata providers');

/** Offered by `metadata` to `view`, which needs the notes before the chain begins: collects them into `query.notes`. */
export const metadataCollector = definePort<(query: Query) => void>('metadata collector');
