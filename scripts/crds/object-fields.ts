/** As on everything in manifests/: `legation uninstall` finds its objects by them, whoever applied them. */
export const INSTALLATION_LABELS: Readonly<Record<string, string>> = {
  "app.kubernetes.io/part-of": "legation",
  "app.kubernetes.io/managed-by": "legation",
};

/** The fields that every object has, so that `kubectl explain` shows them. */
export function withObjectFields(schema: { readonly [field: string]: unknown }): object {
  const properties = schema.properties;
  return {
    ...schema,
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      ...(typeof properties === "object" ? properties : {}),
    },
  };
}
