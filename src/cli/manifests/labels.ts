/** Label on everything that Legation's command line makes. */
export const MANAGED_BY_LABEL = "app.kubernetes.io/managed-by";
export const MANAGED_BY = "legation";

/** On everything of an installation; `uninstall` and an upgrade find it by these. */
export const INSTALLED_LABELS: Readonly<Record<string, string>> = {
  [MANAGED_BY_LABEL]: MANAGED_BY,
  "app.kubernetes.io/part-of": "legation",
};
