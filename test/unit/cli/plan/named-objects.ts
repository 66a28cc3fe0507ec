import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";

export const members = { east: {}, west: {} };

export const bare: WrittenObject = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", annotations: { "legation.dev/delegate": "true" } },
  spec: { containers: [{ name: "main", image: "web:1" }] },
};

export const uses = (optional: boolean): object => ({
  volumes: [{ name: "conf", configMap: { name: "web", ...(optional ? { optional } : {}) } }],
});
