import type { ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Dependencies } from "../delegation/options.ts";

/** What a controller works on that gives members objects of the host which pods there need. */
export interface CopyingOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Registry;
  readonly memberNamespaces: MemberNamespaces;
  /** What authors of the host's objects are told. */
  readonly recorder: EventRecorder;
  /** The host's proxies, with `USES_INDEX`. */
  readonly proxies: () => ReadStore<Pod>;
  /** A proxy that waits may have what it waits for, or know that it waits in vain. */
  readonly onProxy: (key: ObjectKey) => void;
}

/** Gives members objects of the host which pods there need. */
export interface Copier extends Dependencies {
  /** Members were connected, or left. */
  onMembers(): void;
  /** A member was lost or found again. */
  onConnection(member: Member): void;
  /** The host's proxies have been read: who is where in a member is known. */
  onProxies?(member: Member): void;
  /** A delegate came, changed or went. */
  onDelegate?(member: Member, key: ObjectKey): void;
  /** A delegate has ended or gone. */
  onEnded?(member: Member, delegate: Stored<Pod>): void;
  stop(): Promise<void>;
}
