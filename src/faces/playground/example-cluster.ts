/** The location of the example cluster in the playground. */

/** Directory of the example cluster's manifests on the browser machine. */
export const EXAMPLE_CLUSTER = '/examples/cluster';
