import type { DelegatedType } from "../../api/delegated-type.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { membersOfObject } from "../../copies/object-members.ts";
import type { WholeType } from "../../whole/type.ts";
import { TONES, type WholeRow } from "./model.ts";

/** Returns the row of a whole object, by the members on its record. */
export function wholeObjectRow(object: Stored<KubeObject>, type: Stored<DelegatedType>): WholeRow {
  return {
    ...rowOf(object, { type: type.metadata.name, kind: type.spec.kind }),
    members: (membersOfObject({ metadata: object.metadata }) ?? []).map(({ member, state, health, message }) => ({
      member,
      tone: TONES[state] ?? (health === "False" ? "failed" : "running"),
      state: state === "InStep" && health !== undefined && health !== "True" ? `InStep, healthy: ${health}` : state,
      message,
    })),
  };
}

/** Returns the row of an object of a built-in type, with the counters of its members. */
export function builtInRow(type: WholeType, object: Stored<KubeObject>): WholeRow {
  const { plural, kind } = type.resource;
  return { ...rowOf(object, { type: plural, kind }), members: type.partsOf(object) };
}

function rowOf({ metadata }: Stored<KubeObject>, of: Pick<WholeRow, "type" | "kind">): Omit<WholeRow, "members"> {
  const { uid, name, namespace, deletionTimestamp } = metadata;
  return { uid, ...of, namespace, name, isEnding: deletionTimestamp !== undefined };
}
