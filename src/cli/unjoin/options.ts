import type { ClusterClient } from "../../kube/client.ts";
import type { HostContext } from "../member/stored-connection.ts";
import type { Connection } from "../session.ts";

export interface UnjoinOptions {
  readonly name: string;
  readonly drain: boolean;
  /** The member is gone for good: do not wait for it. */
  readonly force: boolean;
  readonly timeoutMs: number;
}

export interface UnjoinContext extends HostContext {
  /** The member with an administrator's rights, when the person gave them. */
  readonly member: Connection | undefined;
  /** The host with the controller's identity, by impersonation. */
  readonly asController: () => Promise<ClusterClient>;
}
