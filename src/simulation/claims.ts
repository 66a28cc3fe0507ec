import { type ObjectKey, objectKey, type PersistentVolumeClaim, type Pod, type Stored } from "../api/kubernetes.ts";
import { clusterOf } from "../copies/claims.ts";
import type { Needs } from "../placement/needs.ts";
import { claimElsewhere, claimKeys, claimNeeds } from "../scheduling/claim-needs.ts";

/** The fields of a claim that decide whether a member can have one like it. */
export type ClaimSpec = Pick<NonNullable<PersistentVolumeClaim["spec"]>, "volumeName" | "dataSource" | "dataSourceRef">;

/** A claim that a StatefulSet's controller creates for a pod. */
export interface ClaimTemplate {
  readonly name: string;
  readonly spec: ClaimSpec;
}

/** The claims of each namespace whose claims were read. */
export type ClaimsByNamespace = ReadonlyMap<string, readonly Stored<PersistentVolumeClaim>[]>;

/** The host's claims, and the member to which each goes with the first pod that names it. */
export class SimulatedClaims {
  readonly #namespaces: ReadonlySet<string>;
  readonly #isMember: (cluster: string) => boolean;
  readonly #claims = new Map<ObjectKey, Stored<PersistentVolumeClaim>>();
  /** The members of claims, and the uids of the simulated pods with which they went there. */
  readonly #homes = new Map<ObjectKey, { readonly member: string; readonly pod: string | undefined }>();

  constructor(claims: ClaimsByNamespace = new Map(), isMember: (cluster: string) => boolean) {
    this.#isMember = isMember;
    this.#namespaces = new Set(claims.keys());
    for (const claim of [...claims.values()].flat()) {
      const key = objectKey(claim.metadata);
      this.#claims.set(key, claim);
      const member = clusterOf(claim);
      if (member !== undefined) this.#homes.set(key, { member, pod: undefined });
    }
  }

  /** Adds a claim that is made before the pods that name it. An existing one stays as it is. */
  add(namespace: string, name: string, spec: ClaimSpec): void {
    const key = objectKey({ namespace, name });
    if (this.#claims.has(key)) return;
    this.#claims.set(key, { metadata: { namespace, name, uid: `planned/${key}`, resourceVersion: "0" }, spec });
  }

  /** Returns the needs of a pod's claims. Undefined if it has none, or those of its namespace were not read. */
  needs(proxy: Stored<Pod>): Needs | undefined {
    const keys = claimKeys(proxy);
    if (keys.length === 0 || !this.#namespaces.has(proxy.metadata.namespace ?? "")) return undefined;
    return claimNeeds(
      keys,
      (key) => this.#claims.get(key),
      (member, claim) => {
        const home = this.#homes.get(objectKey(claim.metadata))?.member;
        // The controller makes the claim in the member when the pod comes.
        return home === undefined || home === member
          ? "prepared"
          : { refused: claimElsewhere(claim, home, this.#isMember(home)) };
      },
    );
  }

  place(proxy: Stored<Pod>, member: string): void {
    for (const key of claimKeys(proxy)) {
      if (!this.#homes.has(key)) this.#homes.set(key, { member, pod: proxy.metadata.uid });
    }
  }

  /** Takes a pod back: a claim that went with it has no home any more. */
  withdraw(proxy: Stored<Pod>): void {
    for (const key of claimKeys(proxy)) {
      if (this.#homes.get(key)?.pod === proxy.metadata.uid) this.#homes.delete(key);
    }
  }
}
