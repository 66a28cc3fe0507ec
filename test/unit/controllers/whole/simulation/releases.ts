import type { AnyObject } from "../../../../../src/api/delegated-type.ts";
import { WHOLE_FINALIZER, WHOLE_KEY } from "../../../../../src/api/keys.ts";
import type { Stored } from "../../../../../src/api/kubernetes.ts";
import { ownerOf } from "../../../../../src/pods/delegate.ts";
import type { StoredWrite } from "../../../../support/api-server/api-server.ts";
import type { SimulatedCluster } from "./cluster.ts";
import { MEMBERS, type MemberName } from "./rules.ts";

export interface ReleaseOptions {
  readonly members: Readonly<Record<MemberName, SimulatedCluster>>;
  /** Reports whether a release has to wait for the member: it is not lost, and its Cluster exists. */
  readonly isAwaited: (member: MemberName) => boolean;
  /** Reports whether the type is being deleted, so that its objects lose the finalizer and copies stay. */
  readonly isRetired: (plural: string) => boolean;
}

/** The rule that the finalizer goes last: no member that is waited for has a copy then, or gets one later. */
export class Releases {
  readonly #options: ReleaseOptions;
  /** The members that were waited for, by the uid of the released object. */
  readonly #released = new Map<string, readonly MemberName[]>();

  constructor(options: ReleaseOptions) {
    this.#options = options;
  }

  /** Returns what a write on the host breaks. */
  onHostWrite({ resource: { plural }, object, before }: StoredWrite): string[] {
    if (before === undefined || !isHeld(before) || isHeld(object)) return [];
    const { name, uid } = object.metadata;
    if (name === "foreign" || this.#options.isRetired(plural)) return [];
    const awaited = MEMBERS.filter((member) => this.#options.isAwaited(member));
    this.#released.set(uid, awaited);
    return awaited
      .filter((member) => isCopyOf(this.#options.members[member].find(plural, name), plural, uid))
      .map((member) => `${plural}/${name} of ${uid} was released while ${member} had a copy`);
  }

  /** Returns what a write in a member breaks. */
  onMemberWrite(member: MemberName, { resource: { plural }, object, before }: StoredWrite): string[] {
    const owner = ownerOf(object)?.uid ?? "";
    if (before !== undefined || this.#released.get(owner)?.includes(member) !== true) return [];
    return [`${plural}/${object.metadata.name} of ${owner} was created in ${member} after its release`];
  }

  /** The object is given to members again. */
  onGiven(uid: string): void {
    this.#released.delete(uid);
  }
}

function isHeld({ metadata: { finalizers = [] } }: Stored<AnyObject>): boolean {
  return finalizers.includes(WHOLE_FINALIZER);
}

/** Reports whether the object is the copy of a whole object, and not one for pods alone. */
function isCopyOf(found: Stored<AnyObject> | undefined, plural: string, uid: string): boolean {
  if (found === undefined || ownerOf(found)?.uid !== uid) return false;
  return plural !== "configmaps" || found.metadata.labels?.[WHOLE_KEY] !== undefined;
}
