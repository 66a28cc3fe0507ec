import type { ClusterClient } from "../../kube/client.ts";
import type { MemberClients } from "../shared/open-member.ts";
import type { ViewInUse } from "./view-in-use.ts";

/** A signed-in user of the page. All that the page shows is read with this user's own rights. */
export interface Viewer {
  readonly host: ClusterClient;
  readonly hostName: string;
  /** Namespace of planned objects that name none. */
  readonly namespace: string;
  /** The only namespace that is shown. Undefined: all. */
  readonly only?: string | undefined;
  /** The user's name on the host. Undefined if it was not asked for. */
  readonly user?: string | undefined;
  readonly view: ViewInUse;
  readonly members: MemberClients;
  /** Fires when the user is signed out. */
  readonly signal: AbortSignal;
}
