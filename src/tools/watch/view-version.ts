/** The version of the shapes that watch pages read. */

/** A version may gain fields, but none are removed or changed. */
export const VIEW_VERSION = 1;
