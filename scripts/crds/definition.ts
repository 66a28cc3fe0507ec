import type { z } from "zod";
import { GROUP } from "../../src/api/keys.ts";
import { structuralSchema } from "./structural-schema.ts";

/** Labels of everything in manifests/, by which `legation uninstall` finds its objects. */
const INSTALLATION_LABELS: Readonly<Record<string, string>> = {
  "app.kubernetes.io/part-of": "legation",
  "app.kubernetes.io/managed-by": "legation",
};

export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly jsonPath: string;
  readonly description?: string;
  /** 0, the default, is shown always, 1 with `-o wide` alone. */
  readonly priority?: number;
}

export interface DefinitionOptions {
  readonly kind: string;
  readonly plural: string;
  /** Absent: the kind is in no category of kubectl, and has no status. */
  readonly hasStatus?: boolean;
  readonly columns: readonly PrinterColumn[];
  readonly schema: z.ZodType;
}

/** JSON path of the condition Ready, for columns. */
export const READY = '.status.conditions[?(@.type=="Ready")]';

/** Returns the CustomResourceDefinition of a cluster-scoped kind of Legation. */
export function definitionOf({ kind, plural, hasStatus = false, columns, schema }: DefinitionOptions): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}`, labels: INSTALLATION_LABELS },
    spec: {
      group: GROUP,
      scope: "Cluster",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(hasStatus ? { categories: ["legation"] } : {}),
      },
      versions: [
        {
          name: "v1alpha1",
          served: true,
          storage: true,
          ...(hasStatus ? { subresources: { status: {} } } : {}),
          additionalPrinterColumns: columns,
          schema: { openAPIV3Schema: withObjectFields(structuralSchema(schema)) },
        },
      ],
    },
  };
}

/** Fields of every object, for `kubectl explain`. */
function withObjectFields(schema: { readonly [field: string]: unknown }): object {
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
