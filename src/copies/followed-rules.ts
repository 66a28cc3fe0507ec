import type { AnyObject } from "../api/delegated-type.ts";
import type { JsonObject } from "../api/json.ts";
import type { Stored } from "../api/kubernetes.ts";
import { claimObstacle, claimStatus, deviceClassesOf, type ObjectPods } from "./resource-claims.ts";

/** Rules of a type whose objects follow pods, beyond those of its DelegatedType. */
export interface FollowedRules {
  /** Returns an object's status from the one of its copy, if it has any. Undefined: the status stays. Default: the copy's. */
  readonly status?: (
    object: Stored<AnyObject>,
    copy: JsonObject | undefined,
    pods: ObjectPods,
  ) => JsonObject | undefined;
  /** Says why pods in members cannot use an object. Undefined if they can. */
  readonly obstacle?: (object: Stored<AnyObject>) => string | undefined;
  /** Returns the DeviceClasses of each request of an object; of a request one is enough. Default: an object requests none. */
  readonly deviceClasses?: (object: Stored<AnyObject>) => readonly (readonly string[])[];
}

/** Rules by the name of the DelegatedType. */
export const FOLLOWED_RULES: Readonly<Record<string, FollowedRules>> = {
  "resourceclaims.resource.k8s.io": { status: claimStatus, obstacle: claimObstacle, deviceClasses: deviceClassesOf },
  "resourceclaimtemplates.resource.k8s.io": { obstacle: claimObstacle, deviceClasses: deviceClassesOf },
};
