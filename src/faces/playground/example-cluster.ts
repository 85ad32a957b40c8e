/** Tells the playground where the example cluster is. */

/** The directory on the browser machine with the example cluster's manifests. */
export const EXAMPLE_CLUSTER = '/examples/cluster';
