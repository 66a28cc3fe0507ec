import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { countsText, TONES } from "../../whole/member-part.ts";
import type { WholeType } from "../../whole/type.ts";
import { partsOf } from "../explain/whole.ts";
import type { WholeRow } from "./model.ts";

/** Returns the row of a whole object, by the members on its record. */
export function wholeRow(
  object: Stored<KubeObject>,
  { builtIn, ...of }: Pick<WholeRow, "type" | "kind"> & { readonly builtIn?: WholeType },
): WholeRow {
  const { uid, name, namespace, deletionTimestamp } = object.metadata;
  const parts = partsOf(object, builtIn);
  return {
    ...of,
    uid,
    namespace,
    name,
    isEnding: deletionTimestamp !== undefined,
    members: parts.map(({ member, state, health, message, counts }) => {
      const tone = TONES[state] ?? (health === "False" ? "failed" : "running");
      return {
        member,
        // An object that has ended waits for nothing.
        tone: tone === "waiting" && builtIn?.isFinished(object) === true ? "succeeded" : tone,
        state: state === "InStep" && health !== undefined && health !== "True" ? `InStep, healthy: ${health}` : state,
        message: message ?? (counts && countsText(counts)),
        done: Object.values(counts ?? {})[0],
      };
    }),
  };
}
