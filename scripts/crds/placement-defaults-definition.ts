import { GROUP } from "../../src/api/keys.ts";
import { placementDefaultsSchema } from "../../src/api/placement-defaults.ts";
import { INSTALLATION_LABELS, withObjectFields } from "./object-fields.ts";
import { structuralSchema } from "./structural-schema.ts";

/** Returns the CustomResourceDefinition of PlacementDefaults. */
export function placementDefaultsDefinition(): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `placementdefaults.${GROUP}`, labels: INSTALLATION_LABELS },
    spec: {
      group: GROUP,
      scope: "Cluster",
      names: {
        kind: "PlacementDefaults",
        listKind: "PlacementDefaultsList",
        plural: "placementdefaults",
        singular: "placementdefaults",
      },
      versions: [
        {
          name: "v1alpha1",
          served: true,
          storage: true,
          additionalPrinterColumns: [{ name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" }],
          schema: { openAPIV3Schema: withObjectFields(structuralSchema(placementDefaultsSchema)) },
        },
      ],
    },
  };
}
