/** The place of the example cluster on the machine in the browser. */

/** The directory of the example cluster's manifests on the machine in the browser. */
export const EXAMPLE_CLUSTER = '/examples/cluster';
