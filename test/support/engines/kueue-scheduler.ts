import type { Stored } from "../../../src/api/kubernetes.ts";
import type { CheckEntry, Workload } from "../../../src/api/kueue-workload.ts";
import { workloads } from "../../../src/api/resources.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { resourceOf } from "../../../src/kube/optional-resource.ts";
import type { Resource } from "../../../src/kube/resources.ts";

export const workloadsV1beta2: Resource<Workload> = resourceOf(workloads, {});

/** Namespace and name of a Workload. */
export type Ref = { readonly namespace: string; readonly name: string };
type Status = NonNullable<Workload["status"]>;

/** Does what Kueue's scheduler and its Workload controller do with a Workload, for tests without Kueue. */
export class KueueScheduler {
  readonly #client: ClusterClient;
  readonly #check: string;

  constructor(client: ClusterClient, check: string) {
    this.#client = client;
    this.#check = check;
  }

  /** Reserves quota: the check is asked. */
  reserve(ref: Ref, assignments: NonNullable<Status["admission"]>["podSetAssignments"]): Promise<Stored<Workload>> {
    const entry = { name: this.#check, state: "Pending", message: "", lastTransitionTime: now() } as const;
    return this.#write(ref, {
      admission: { clusterQueue: "queue", ...(assignments === undefined ? {} : { podSetAssignments: assignments }) },
      conditions: [condition("QuotaReserved", "True"), condition("Evicted", "False")],
      admissionChecks: [entry],
    });
  }

  /** Admits a workload whose check is ready. */
  async admit(ref: Ref): Promise<Stored<Workload>> {
    const { status = {} } = await this.#client.get(workloadsV1beta2, ref);
    const conditions = [...(status.conditions ?? []), condition("Admitted", "True")];
    return this.#write(ref, { conditions });
  }

  /** Evicts a workload whose check says so: the check is reset, and the quota goes. */
  async evict(ref: Ref): Promise<Stored<Workload>> {
    const { status = {} } = await this.#client.get(workloadsV1beta2, ref);
    const checks = (status.admissionChecks ?? []).map((entry) => ({
      ...entry,
      state: "Pending" as const,
      message: `Reset to Pending after eviction. Previously: ${entry.state}`,
      lastTransitionTime: now(),
      retryCount: (entry.retryCount ?? 0) + 1,
    }));
    const conditions = [
      condition("QuotaReserved", "False"),
      condition("Admitted", "False"),
      condition("Evicted", "True"),
    ];
    return this.#write(ref, { conditions, admissionChecks: checks });
  }

  /** Returns the entry of the check. */
  async entry(ref: Ref): Promise<CheckEntry | undefined> {
    const { status } = await this.#client.get(workloadsV1beta2, ref);
    return status?.admissionChecks?.find(({ name }) => name === this.#check);
  }

  #write(ref: Ref, status: Status): Promise<Stored<Workload>> {
    return this.#client.patch(workloadsV1beta2, ref, { type: "merge", body: { status } }, { subresource: "status" });
  }
}

function condition(type: string, status: string): NonNullable<Status["conditions"]>[number] {
  return { type, status, reason: type, message: "", lastTransitionTime: now() };
}

function now(): string {
  return new Date().toISOString();
}
