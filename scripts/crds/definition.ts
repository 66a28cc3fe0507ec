/** Labels of everything in manifests/, by which `legation uninstall` finds its objects. */
export const INSTALLATION_LABELS: Readonly<Record<string, string>> = {
  "app.kubernetes.io/part-of": "legation",
  "app.kubernetes.io/managed-by": "legation",
};

/** Fields of every object, for `kubectl explain`. */
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
