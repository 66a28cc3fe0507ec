import type { DelegatedType } from "../../../api/delegated-type.ts";
import type { Stored } from "../../../api/kubernetes.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { listDelegatedTypes } from "../../shared/delegated-types.ts";
import { readable } from "../../shared/reading.ts";
import { unmetConditions } from "../delegated-type.ts";
import { type Finding, forbidden, ok } from "./finding.ts";

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

/** Judges a DelegatedType. `now` is epoch ms by the host's clock. */
export function judgeType(type: Stored<DelegatedType>, now: number): readonly Finding[] {
  const found = unmetConditions(type).flatMap(({ status, trouble }): Finding[] => {
    if (status === "False") return [{ ...trouble, state: "FAIL" }];
    const isSettled = trouble.since === undefined || now - Date.parse(trouble.since) >= SETTLED_AFTER_MS;
    return isSettled ? [{ ...trouble, state: "WARN" }] : [];
  });
  return found.length > 0 ? found : [ok(`DelegatedType ${type.metadata.name}: its objects are followed`)];
}
