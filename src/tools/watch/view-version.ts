/** The version of the views' shapes, which readers compare. */

/** A version may gain fields, but none are removed or changed. */
export const VIEW_VERSION = 1;
