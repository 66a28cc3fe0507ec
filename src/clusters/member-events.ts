import type { ObjectKey, Pod, Stored } from "../api/kubernetes.ts";

export interface MemberEvents<Member> {
  /** A delegate under this key was added, updated or deleted; `delegates.departed` returns a deleted one's last state. */
  readonly delegate: [member: Member, key: ObjectKey];
  /** A delegate of the member freed resources. */
  readonly ended: [member: Member, delegate: Stored<Pod>];
  /** The member's nodes changed in a way that matters to placement. */
  readonly memberNodes: [member: Member];
  readonly responsive: [member: Member];
  /** The member became reachable or unreachable, readable or unreadable. */
  readonly connection: [member: Member];
}
