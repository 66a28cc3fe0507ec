import type { PersistentVolumeClaim, Stored } from "../../../../src/api/kubernetes.ts";
import type { ExecutorOptions } from "../../../../src/controllers/claims/execute.ts";
import type { Observed } from "../../../../src/controllers/claims/model.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { namespacesThere } from "../fleet.ts";

/** The options of an executor that a test does not look at. */
export const NOTHING_ELSE: Omit<ExecutorOptions, "registry" | "guard" | "clock"> = {
  host: fakeClient({}),
  hostId: HOST.id,
  memberNamespaces: namespacesThere,
  restoredHost: { confirm: async () => {} },
  onRefused: () => {},
  onUncertain: () => {},
  onReconsidered: () => {},
};

/** What the watches show: these claims in `west`. */
export function shownInWest(...claims: readonly Stored<PersistentVolumeClaim>[]): Observed {
  const copies = claims.map((claim) => ({ member: "west", claim, usable: true, held: false }));
  return { host: HOST, copies, usable: true };
}
