/** The place of the example cluster on the machine in the browser. */

/** Where the example cluster's manifests are on the machine in the browser. */
export const EXAMPLE_CLUSTER = '/examples/cluster';
