import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { Resource } from "../../kube/resources.ts";
import type { HostState } from "../../simulation/host-state.ts";
import type { Simulation } from "../../simulation/simulation.ts";
import type { WrittenObject } from "../shared/documents.ts";
import type { DryRunAnswer } from "./dry-run.ts";
import type { ManifestState, WrittenWorkload } from "./manifest.ts";
import type { PlannedNamespaces } from "./namespaces.ts";
import type { WorkloadPlan } from "./outcome.ts";

/** A manifest, the host's present state, and what asks the host's API server. */
export interface PlanInput {
  readonly workloads: readonly WrittenWorkload[];
  /** Objects that ask to go to members whole. */
  readonly objects: readonly WrittenObject[];
  /** Namespace of objects that name none. */
  readonly current: string;
  readonly host: HostState;
  readonly types: readonly DelegatedType[];
  readonly namespaces: PlannedNamespaces;
  readonly found: ManifestState;
  readonly now: number;
  readonly ask: (pod: Pod) => Promise<DryRunAnswer<Stored<Pod>>>;
  readonly askObject: (resource: Resource<AnyObject>, object: AnyObject) => Promise<DryRunAnswer<Stored<AnyObject>>>;
}

/** An object of a manifest after admission. */
export interface Reviewed {
  readonly plan: WorkloadPlan;
  /** Finds its place. Absent: it is refused, stays on the host, or is in its place already. */
  readonly place?: ((simulation: Simulation) => Partial<WorkloadPlan>) | undefined;
  readonly notChecked?: string | undefined;
}
