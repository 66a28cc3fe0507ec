/** A room of the house: a folder of sources, or some of a folder's files, and the rooms it may import. */
export interface Room {
  /**
   * A folder, or files as a glob, relative to `src` (`webhook` to the root). A folder whose subfolders have rows holds
   * its own files only.
   */
  readonly room: string;
  /** The room's purpose, as docs/architecture.md prints it. */
  readonly purpose: string;
  /** The rooms that all rooms of its sort may import. */
  readonly foundation?: keyof typeof FOUNDATIONS;
  /** Further rooms that it may import, or single files of them (`kube/messages.ts`). */
  readonly imports: readonly string[];
  /** Imports that ought to go: a step of a rebuilding that is under way. */
  readonly exceptions?: readonly string[];
  /** Packages beside those that every room may import. */
  readonly packages?: readonly string[];
  /** Pure code: no clock, randomness, environment or module of Node.js. */
  readonly pure?: true;
}

/** Packages that only the rooms that name them import, and why. */
export const RESERVED_PACKAGES: Readonly<Record<string, string>> = {
  undici: "Only src/kube talks to API servers; use its client (types come from src/api/kubernetes.ts).",
  "@kubernetes/client-node":
    "Only src/kube talks to API servers; use its client (types come from src/api/kubernetes.ts).",
  fastify: "Only webhook/ and the page's server in src/cli/ui use fastify.",
  "node-forge": "Only tests use node-forge; src/certificates issues certificates.",
};

/** Rooms that many rooms of one sort may import. */
export const FOUNDATIONS: Readonly<Record<"decision" | "controller" | "command", readonly string[]>> = {
  decision: [
    ...["api", "pods", "placement", "copies"],
    ...["kube/request-ends.ts", "runtime/backoff.ts", "runtime/held-writes.ts"],
    ...["runtime/requeue.ts", "runtime/told.ts", "runtime/undone-writes.ts"],
    ...[
      "scheduling/memory.ts",
      "scheduling/retries/backoff.ts",
      "scheduling/retries/pause.ts",
      "scheduling/overflow-reasons.ts",
    ],
    ...["scheduling/placement-view.ts", "scheduling/whole"],
  ],
  controller: [
    "api",
    "pods",
    "placement",
    "copies",
    "clusters",
    "scheduling",
    "runtime",
    "telemetry",
    "kube",
    "controllers",
  ],
  command: ["api", "pods", "copies", "runtime", "telemetry", "kube", "whole", "whole/jobs", "cli/shared"],
};

/** Returns all rooms and files that a room may import, exceptions apart. */
export function allowedImports({ foundation, imports }: Room): readonly string[] {
  return [...(foundation === undefined ? [] : FOUNDATIONS[foundation]), ...imports];
}
