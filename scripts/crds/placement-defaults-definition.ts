import { placementDefaultsSchema } from "../../src/api/placement-defaults.ts";
import { definitionOf } from "./definition.ts";

/** Returns the CustomResourceDefinition of PlacementDefaults. */
export function placementDefaultsDefinition(): object {
  return definitionOf({
    kind: "PlacementDefaults",
    plural: "placementdefaults",
    columns: [{ name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" }],
    schema: placementDefaultsSchema,
  });
}
