import type { Tone } from "../../whole/member-part.ts";
import type { MemberStatus } from "../explain/host.ts";
import type { MemberDetail } from "../explain/member.ts";
import type { Journey } from "../explain/pod.ts";
import type { QueueStatus } from "../explain/queues.ts";
import type { ComparedLine } from "./compare.ts";

/** The data of the page: what the server sends, as the page reads it. No functions, so that the page may import it. */

/** A resource of a member, in cores, bytes or pieces. */
export interface ResourceUse {
  readonly resource: string;
  readonly allocatable: number;
  /** Requested by this host's unfinished pods. */
  readonly ours: number;
  /** Requested by other tenants' pods, as last read. */
  readonly others: number;
}

/** A member with what its card shows beyond its status. */
export interface MemberRow extends MemberStatus {
  /** Since when the member is, or is not, ready. RFC 3339. */
  readonly since?: string | undefined;
  readonly server?: string | undefined;
  readonly isCordoned: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** As `key=value:effect`. */
  readonly taints: readonly string[];
  readonly use: readonly ResourceUse[];
}

export interface PodRow {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** As `kubectl get pods` shows it. */
  readonly status: string;
  /** Decides the colour of the status. */
  readonly state: "waiting" | "starting" | "running" | "succeeded" | "failed" | "ending";
  /** Ready containers of all, as `1/2`. */
  readonly ready: string;
  readonly restarts: number;
  readonly member?: string | undefined;
  /** Node in the member. */
  readonly node?: string | undefined;
  /** Workload of the pod, as `Deployment/web`. */
  readonly workload?: string | undefined;
  /** RFC 3339. */
  readonly created: string;
  /** Why the pod has no member, or does not run. */
  readonly why?: string | undefined;
}

/** A whole object of the host, and what its members have of it. */
export interface WholeRow {
  readonly uid: string;
  /** Name of its DelegatedType, or plural of a built-in type. */
  readonly type: string;
  readonly kind: string;
  /** Undefined for a type that is not namespaced. */
  readonly namespace: string | undefined;
  readonly name: string;
  readonly isEnding: boolean;
  readonly members: readonly WholePart[];
}

/** A member's part of a whole object, in short. */
export interface WholePart {
  readonly member: string;
  /** Decides the colour of the state. */
  readonly tone: Tone;
  readonly state: string;
  readonly message?: string | undefined;
  /** Number that is done, and of how many. */
  readonly done?: readonly [number, of?: number] | undefined;
}

export interface WholeRows {
  readonly rows: readonly WholeRow[];
  /** Types that cannot be read for another reason than the user's rights, and why. */
  readonly notRead: readonly string[];
}

/** The parts of the page that the user may not read. */
export interface HiddenFromUser {
  /** Says what, and which right shows it. Undefined: nothing is hidden. */
  readonly line?: string | undefined;
  /** The members are among it. */
  readonly members: boolean;
}

/** A message of the live stream. `pods` has changed rows; the first of a connection replaces all. */
export type LiveMessage =
  | { readonly type: "host"; readonly name: string }
  | { readonly type: "members"; readonly members: readonly MemberRow[] }
  | {
      readonly type: "pods";
      readonly isFirst: boolean;
      readonly rows: readonly PodRow[];
      /** Uids. */
      readonly gone: readonly string[];
    }
  /** All whole objects, whenever one has changed. */
  | ({ readonly type: "whole" } & WholeRows)
  | ({ readonly type: "hidden" } & HiddenFromUser)
  /** All pods of the first list were sent. */
  | { readonly type: "complete" }
  /** Comes every two seconds: milliseconds since the host's API server was last heard. Undefined: never heard. */
  | { readonly type: "heard"; readonly silentMs?: number | undefined }
  /** Why the host cannot be read. Undefined once it can. */
  | { readonly type: "problem"; readonly message?: string | undefined };

/** A pod, as the host has it. */
export interface PodPageView {
  readonly journey: Journey;
  readonly containers: readonly ContainerView[];
  /** The container whose log is shown first, as kubectl chooses it. */
  readonly defaultContainer: string | undefined;
}

export interface ContainerView {
  readonly name: string;
  readonly kind: "init" | "container" | "debug";
  /** `none`: it may still run. `never`: its pod ended before it ran. `growing`: it runs. */
  readonly log: "none" | "never" | "growing" | "complete";
  /** Why there is no log. */
  readonly why?: string | undefined;
  readonly restarts: number;
}

/** An object of the host beside its copy in a member. */
export interface ComparedView {
  readonly lines: readonly ComparedLine[];
  /** Member of the copy. Undefined: no member has one. */
  readonly member?: string | undefined;
  /** Why the copy is not shown. */
  readonly notRead?: string | undefined;
  /** Events of the copy. Undefined if they were not read. */
  readonly events?: Journey["events"] | undefined;
}

/** A node of a member, with the room that its pods leave. */
export interface MemberNode {
  readonly name: string;
  readonly isReady: boolean;
  readonly isCordoned: boolean;
  /** Pods that have not ended, of all tenants. */
  readonly pods: number;
  /** In cores, bytes or pieces. */
  readonly room: readonly { readonly resource: string; readonly allocatable: number; readonly free: number }[];
}

/** A member, beyond its row. */
export interface MemberPageView extends Omit<MemberDetail, "nodes"> {
  /** Undefined: not read. */
  readonly nodes?: readonly MemberNode[];
  readonly nodesNotRead?: string;
}

/** A Job that has finished, or a CronJob. */
export interface JobRow {
  readonly kind: "Job" | "CronJob";
  readonly namespace: string;
  readonly name: string;
  /** Its author asks for delegation. */
  readonly asks: boolean;
  /** The CronJob that made the Job. */
  readonly cronJob?: string;
  readonly state: string;
}

/** The name of a Service of the host. */
export interface NamedService {
  readonly namespace: string;
  readonly name: string;
}

/** A Service of the host. */
export interface ServiceRow {
  readonly name: string;
  /** Type, ports and relay of the Service. */
  readonly about: string;
  /** Ready endpoints, of all. */
  readonly ready: number;
  readonly endpoints: number;
  /** Names of the pods among them. */
  readonly pods: readonly string[];
}

/** A warning of the host's events. */
export interface WarningRow {
  /** RFC 3339. */
  readonly at: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
}

/** Kueue's queues of the host. */
export interface QueuesView {
  /** Undefined: the host does not serve Kueue. */
  readonly queues?: readonly QueueStatus[];
  /** Words for what the user may not read. */
  readonly hidden?: string;
}

/** Who is signed in, and how. */
export interface SignedIn {
  /** `address`: by the printed address. `token`: by a bearer token, which can be given up. */
  readonly by: "address" | "token";
  readonly user?: string | undefined;
}
