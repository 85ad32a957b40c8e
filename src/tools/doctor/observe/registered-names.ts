/** Names that contain another owner’s name with a domain appended: `api.stripe.com.corp.example.` */

/** The top-level domains with the most names. Unlike `dev` or `app`, one owner’s zones hardly ever have these labels. */
const COMMON_TOPS = /^(?:com|net|org)$/;

/**
 * The registered name with its hosts, and the domain behind it, both with a final dot; null: no
 * label within the name is a common top-level domain.
 */
export function registeredWithin(name: string): { stem: string; domain: string } | null {
  const labels = name.slice(0, -1).split('.');
  // Something is registered before the label, and the domain has two labels at least.
  for (let at = labels.length - 3; at > 0; at--)
    if (COMMON_TOPS.test(labels[at]!))
      return {
        stem: `${labels.slice(0, at + 1).join('.')}.`,
        domain: `${labels.slice(at + 1).join('.')}.`,
      };
  return null;
}

/** Top-level domains that are hardly ever the names of namespaces or hosts. */
const TOPS =
  /\.(?:com|net|org|edu|gov|mil|int|info|biz|io|co|me|ai|eu|us|uk|de|fr|nl|ch|at|jp|cn|in|br|au|ca|se|no|es|pl|be|dk|fi)\.$/;

/** True for `quay.io.` and `api.stripe.com.`, which are written as external names. */
export function endsInTop(name: string): boolean {
  return TOPS.test(name);
}
