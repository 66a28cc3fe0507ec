import { delegatedTypeSchema } from "../../src/api/delegated-type.ts";
import { GROUP } from "../../src/api/keys.ts";
import { INSTALLATION_LABELS, withObjectFields } from "./object-fields.ts";
import { structuralSchema } from "./structural-schema.ts";

const ready = '.status.conditions[?(@.type=="Ready")]';

/** Returns the CustomResourceDefinition of DelegatedType. */
export function delegatedTypeDefinition(): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `delegatedtypes.${GROUP}`, labels: INSTALLATION_LABELS },
    spec: {
      group: GROUP,
      scope: "Cluster",
      names: {
        kind: "DelegatedType",
        listKind: "DelegatedTypeList",
        plural: "delegatedtypes",
        singular: "delegatedtype",
        categories: ["legation"],
      },
      versions: [
        {
          name: "v1alpha1",
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [
            { name: "Ready", type: "string", jsonPath: `${ready}.status` },
            { name: "Objects", type: "integer", jsonPath: ".status.objects", description: "Objects that members get." },
            {
              name: "Waiting",
              type: "integer",
              jsonPath: ".status.waiting",
              description: "Objects that some member lacks, or has in another version.",
            },
            { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
            { name: "Message", type: "string", jsonPath: `${ready}.message`, priority: 1 },
          ],
          schema: { openAPIV3Schema: withObjectFields(structuralSchema(delegatedTypeSchema)) },
        },
      ],
    },
  };
}
