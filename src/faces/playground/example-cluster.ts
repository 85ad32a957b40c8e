/** Where the playground keeps the example cluster. */

/** Directory of the example cluster's manifests on the browser machine. */
export const EXAMPLE_CLUSTER = '/examples/cluster';
