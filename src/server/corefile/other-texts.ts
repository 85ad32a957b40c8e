/** Recognizes files that were mistaken for a Corefile, such as a Kubernetes manifest or a Helm template. */

/** The explanation and the fix. */
export interface OtherText {
  readonly hint: string;
  readonly remedy: string;
}

/** Returns advice for a text that is not a Corefile, or null if it might be one. */
export function adviceForOther(text: string): OtherText | null {
  if (isManifest(text)) return manifestAdvice;
  return isChart(text) ? chartAdvice : null;
}

/**
 * Returns true for a Helm template. The `template` plugin also uses {{ }}, but only with its own fields and within a
 * line.
 */
function isChart(text: string): boolean {
  return (
    /^[ \t]*\{\{/m.test(text) || (text.includes('{{') && /\.(Values|Release|Chart)\b/.test(text))
  );
}

const chartAdvice: OtherText = {
  hint: 'This is a Helm chart template, not the Corefile that Helm renders from it.',
  remedy:
    "Use its output: helm template RELEASE CHART, or kubectl -n kube-system get configmap coredns -o jsonpath='{.data.Corefile}' > Corefile",
};

/** Returns true for Kubernetes YAML, which is most likely the ConfigMap that contains a Corefile. */
function isManifest(text: string): boolean {
  return (
    /^(apiVersion|kind|data):(\s|$)/m.test(text) || /^[ \t]*['"]?Corefile['"]?:\s*[|>]/m.test(text)
  );
}

const manifestAdvice: OtherText = {
  hint: 'This is a Kubernetes manifest, perhaps the ConfigMap that contains a Corefile, not the Corefile itself.',
  remedy:
    "Extract it: kubectl -n kube-system get configmap coredns -o jsonpath='{.data.Corefile}' > Corefile",
};
