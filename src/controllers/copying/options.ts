import type { ObjectKey, Pod } from "../../api/kubernetes.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { ReadStore } from "../../runtime/store.ts";

/** What a controller works on that gives members objects of the host which pods there need. */
export interface CopyingOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Registry;
  readonly memberNamespaces: MemberNamespaces;
  /** The host's proxies, with `USES_INDEX`. */
  readonly proxies: () => ReadStore<Pod>;
  /** A proxy that waits may have what it waits for, or know that it waits in vain. */
  readonly onProxy: (key: ObjectKey) => void;
}
