import type { ObjectKey, Pod, Stored } from "../api/kubernetes.ts";
import type { DependencyKind } from "../copies/dependencies.ts";
import type { Needs } from "../placement/needs.ts";

/** Copies what a pod needs of its namespace to members. */
export interface Preparer {
  /** Returns undefined when the pod needs nothing. */
  needs(proxy: Stored<Pod>): Needs | undefined;
  /** Has it copied to the member, and kept there until the proxy is bound or gone. Reports whether all of it is there. */
  prepare(key: ObjectKey, proxyUid: string, member: string): boolean;
  /** Handles a member's answer that it lacks an object. Reports whether a copy is there: the API server's cache lags. */
  onMissing?(delegate: Pod, member: string, kind: DependencyKind): boolean;
}
