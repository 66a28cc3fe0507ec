import type { KubeObject, ServiceExport, Stored } from "../../api/kubernetes.ts";
import type { ServiceKind, ServiceObject } from "../../copies/services.ts";
import type { HostIdentity } from "../../pods/delegate.ts";

declare const copyKeyBrand: unique symbol;
/** `member/Kind/namespace/name`: names one copy. */
export type CopyKey = string & { readonly [copyKeyBrand]: true };

/** The parts of a copy's key. */
export interface CopyRef {
  readonly member: string;
  readonly kind: ServiceKind;
  readonly namespace: string;
  readonly name: string;
}

/** The key of a copy. */
export function copyKey({ member, kind, namespace, name }: CopyRef): CopyKey {
  return `${member}/${kind}/${namespace}/${name}` as CopyKey;
}

/** The parts of a copy's key. */
export function copyRef(key: CopyKey): CopyRef {
  const [member = "", kind, namespace = "", name = ""] = key.split("/");
  return { member, kind: kind === "EndpointSlice" ? kind : "Service", namespace, name };
}

/** What is known of an object of the host. */
export type Source =
  | { readonly state: "present"; readonly object: Stored<ServiceObject> }
  | { readonly state: "missing" }
  /** The host's objects of that kind are being read, or cannot be. */
  | { readonly state: "unknown" };

/** What is known of the ServiceExport beside a Service of the host. */
export type ExportSource =
  | { readonly state: "present"; readonly object: Stored<ServiceExport> }
  | { readonly state: "missing" }
  | { readonly state: "unknown" };

/** Everything that one decision on a copy depends on. */
export interface Observed {
  readonly ref: CopyRef;
  readonly host: HostIdentity;
  /** The member's API server answers, and its copies have been read. */
  readonly usable: boolean;
  readonly copy?: Stored<ServiceObject>;
  /** The copy's deletion was sent, and may still happen, though pods have been given to the member since. */
  readonly leaving?: boolean;
  readonly source: Source;
  /** A pod that has been given to the member is an endpoint of it, or may ask for it when it has no selector. */
  readonly wanted: boolean;
  /** Pods of its namespace have been given to the member: a copy that is there may be in use. */
  readonly kept: boolean;
  /** Since when it is not kept, as far as this controller knows; epoch ms. */
  readonly idleSince: number;
  /** Why the member did not take it, and until when it is not tried again; epoch ms. */
  readonly refused?: { readonly until: number };
  /** Versions of source and copy between which the member leaves a difference. */
  readonly settled?: string;
  /** Somebody else keeps changing or deleting the copy: until when it is left as it is; epoch ms. */
  readonly contestedUntil?: number;
  /** Whether the host exports the Service to other clusters. */
  readonly exported: ExportSource;
  /** When the member is to be told so next; epoch ms. */
  readonly exportDue: number;
}

/** One write in the member. */
export type Action =
  | {
      readonly type: "create";
      readonly ref: CopyRef;
      readonly object: ServiceObject;
      readonly source: Stored<KubeObject>;
    }
  | {
      readonly type: "patch";
      readonly ref: CopyRef;
      readonly patch: readonly object[];
      readonly copy: Stored<KubeObject>;
      readonly source: Stored<KubeObject>;
    }
  /** Nothing is deleted when the copy has changed since. */
  | { readonly type: "delete"; readonly ref: CopyRef; readonly copy: Stored<KubeObject> }
  /** Marks the copy and makes a ServiceExport beside it, unless both are so. */
  | {
      readonly type: "export";
      readonly ref: CopyRef;
      readonly copy: Stored<KubeObject>;
      readonly source: Stored<KubeObject>;
    }
  /** Removes the ServiceExport, and then the mark. */
  | { readonly type: "unexport"; readonly ref: CopyRef; readonly copy: Stored<KubeObject> };

/** The action of this type. */
export type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

/** The versions between which a difference was left. */
export function settlement(source: Stored<KubeObject>, copyVersion: string): string {
  return `${source.metadata.uid}/${source.metadata.resourceVersion}/${copyVersion}`;
}
