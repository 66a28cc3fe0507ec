import type { Terminal } from "./terminal.ts";

/** A part of a document that the account may not read. */
export interface Hidden {
  /** A noun phrase: `the members and their state`. */
  readonly what: string;
  /** The right that shows it: `the ClusterRole legation-viewer`. */
  readonly right: string;
}

/** The members, for an account with rights in a namespace alone. */
export const MEMBERS: Hidden = ofViewers("the members, their share and their state");

/** Objects of types that the account cannot know of. */
export const DELEGATED_OBJECTS: Hidden = ofViewers("objects of delegated types");

/** Pods that an account with rights in a namespace does not see. */
export const OTHER_PODS: Hidden = ofViewers("pods of other namespaces");

/** The virtual nodes, by which a member may be not ready though its Cluster says that it is. */
export const VIRTUAL_NODES: Hidden = ofViewers("virtual nodes");

/** Kueue's queues, where the host serves them. */
export const QUEUES: Hidden = ofViewers("Kueue's queues");

/** The members that flavors of Kueue select, by the flavors' node labels. */
export const FLAVORS: Hidden = ofViewers("the members of Kueue's flavors");

/** Workloads that wait in Kueue's queues, for an account that sees its namespace's alone. */
export const OTHER_WORKLOADS: Hidden = ofViewers("workloads of other namespaces in Kueue's queues");

/** Returns the objects of one type, which the account may not list. */
export function objectsOf(type: string): Hidden {
  return { what: type, right: "the right to list them" };
}

/** Returns a part that manifests/rbac-viewer.yaml lets its users read. */
export function ofViewers(what: string): Hidden {
  return { what, right: "the ClusterRole legation-viewer" };
}

/** Returns the line that says what is hidden, and which right shows it. Undefined if nothing is. */
export function hiddenLine(hidden: readonly Hidden[]): string | undefined {
  if (hidden.length === 0) return undefined;
  const parts = [...Map.groupBy(hidden, ({ right }) => right)].map(
    ([right, those]) => `${those.map(({ what }) => what).join(", ")}, which ${right} lets you read`,
  );
  return `not shown: ${parts.join("; ")}`;
}

export function hiddenText(line: string | undefined, terminal: Pick<Terminal, "paint">): string[] {
  return line === undefined ? [] : [terminal.paint("dim", line)];
}
