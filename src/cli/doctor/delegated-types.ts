import type { DelegatedType } from "../../api/delegated-type.ts";
import type { Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import { readable } from "../shared/reading.ts";
import { type Finding, fail, forbidden, ok, warn } from "./finding.ts";

// Types and members are read within seconds of a start of the controller, or of a join.
const SETTLED_AFTER_MS = 60_000;

/** Checks that objects of delegated types are followed. Rejects with KubeError. */
export async function typeFindings(
  host: ClusterClient,
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<readonly Finding[]> {
  const types = await readable(listDelegatedTypes(host, signal));
  return types === undefined
    ? [forbidden("DelegatedTypes: you may not list them")]
    : types.flatMap((type) => judgeType(type, now));
}

/** Judges a DelegatedType by its conditions, of which all are True when it works. `now` is epoch ms by the host's clock. */
export function judgeType({ metadata, status }: Stored<DelegatedType>, now: number): readonly Finding[] {
  const { name } = metadata;
  const subject = `DelegatedType ${name}`;
  const remedy = `kubectl describe delegatedtypes.legation.dev ${name}`;
  const conditions = status?.conditions ?? [];
  if (conditions.length === 0) return [warn(`${subject}: no controller has reported on it`, remedy)];
  const found = conditions.flatMap(({ type, status: state, message, lastTransitionTime }) => {
    if (state === "False") return [fail(`${subject}: ${type} is False: ${message}`, remedy)];
    const isSettled = now - Date.parse(lastTransitionTime) >= SETTLED_AFTER_MS;
    return state !== "True" && isSettled ? [warn(`${subject}: ${type} is ${state}: ${message}`, remedy)] : [];
  });
  return found.length > 0 ? found : [ok(`${subject}: its objects are followed`)];
}
