/** Names that hold the name of another owner, with a domain appended: `api.stripe.com.corp.example.` */

/** Top-level domains with most registered names. Zones of one owner are hardly ever called like this, as they are `dev` or `app`. */
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
