import type { DelegatedType } from "../../../../src/api/delegated-type.ts";
import { type DelegationMode, delegationModeOf } from "../../../../src/api/delegation-mode.ts";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { DryRunAnswer } from "../../../../src/cli/plan/dry-run.ts";
import type { PlanInput } from "../../../../src/cli/plan/input.ts";
import { claimsAmong, type Existing, type ManifestState, workloadsOf } from "../../../../src/cli/plan/manifest.ts";
import { type PlannedNamespaces, planNamespaces } from "../../../../src/cli/plan/namespaces.ts";
import type { Plan } from "../../../../src/cli/plan/outcome.ts";
import { planOf } from "../../../../src/cli/plan/plan.ts";
import { isWholeObject } from "../../../../src/cli/plan/whole.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { admitPod } from "../../../../src/simulation/admission.ts";
import type { HostState } from "../../../../src/simulation/host-state.ts";

/** A Deployment `web` that asks for delegation. */
export function deployment(
  replicas: number,
  annotations: Readonly<Record<string, string>> = {},
  podSpec: object = {},
): WrittenObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", annotations: { "legation.dev/delegate": "true", ...annotations } },
    spec: {
      replicas,
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "main", image: "web:1", resources: { requests: { cpu: "1" } } }], ...podSpec },
      },
    },
  };
}

/** The answers that a plan meets beside the host's state. */
export interface PlanParts {
  readonly found?: Partial<Omit<ManifestState, "existing">>;
  /** The workload as the host has it, by kind and name, and its pods. */
  readonly existing?: Existing;
  readonly namespaces?: PlannedNamespaces;
  /** The API server's answer; default: it runs no admission but Legation's webhook. */
  readonly answer?: (pod: Pod, mode: DelegationMode) => DryRunAnswer<Stored<Pod>> | Promise<DryRunAnswer<Stored<Pod>>>;
  readonly now?: number;
  readonly types?: readonly DelegatedType[];
  /** The API server's answer to a whole object; default: you may not ask. */
  readonly answerToObject?: PlanInput["askObject"];
}

/** The plan for objects in namespace `team`; the first one may exist already. */
export async function planWith(
  state: HostState,
  written: readonly WrittenObject[],
  {
    found,
    existing,
    answer = webhookAlone,
    now = Date.parse("2026-01-02T00:00:00Z"),
    types = [],
    answerToObject = async () => ({ is: "notChecked", why: "you may not patch widgets" }),
    ...parts
  }: PlanParts = {},
): Promise<Plan> {
  const untouched = { after: state.namespaces, refused: new Map(), changed: new Set<string>(), notChecked: [] };
  const namespaces = parts.namespaces ?? untouched;
  const modes = new Map(namespaces.after.map(({ metadata }) => [metadata.name, delegationModeOf(metadata.labels)]));
  const workloads = workloadsOf(written, "team");
  const [first] = workloads;
  return planOf({
    workloads,
    objects: written.filter(isWholeObject),
    current: "team",
    host: state,
    types,
    namespaces,
    found: {
      existing: new Map(first === undefined || existing === undefined ? [] : [[first, existing]]),
      claims: state.claims ?? new Map(),
      writtenClaims: claimsAmong(written, "team"),
      objects: new Map(),
      missing: new Set<never>(),
      created: new Set<never>(),
      services: [],
      notChecked: [],
      ...found,
    },
    now,
    ask: async (pod) => answer(pod, modes.get(pod.metadata?.namespace ?? "") ?? "annotated"),
    askObject: answerToObject,
  });
}

/** The plan for objects in namespace `team` on an API server that runs no admission but Legation's webhook. */
export function plan(state: HostState, ...objects: readonly WrittenObject[]): Promise<Plan> {
  return planWith(state, objects);
}

/** The plan for objects with namespaces among them, about which the API server is asked. */
export async function planWithNamespaces(
  state: HostState,
  objects: readonly WrittenObject[],
  ask: Parameters<typeof planNamespaces>[2] = async (object) => ({ is: "admitted", object }),
): Promise<Plan> {
  return planWith(state, objects, { namespaces: await planNamespaces(state.namespaces, objects, ask) });
}

/** The answer of an API server that runs no admission but Legation's webhook. */
export function webhookAlone(pod: Pod, mode: DelegationMode): DryRunAnswer<Stored<Pod>> {
  const metadata = { ...pod.metadata, name: pod.metadata?.name ?? "made-up", uid: "dry-run", resourceVersion: "" };
  const admitted = admitPod({ ...pod, metadata }, mode);
  return admitted.denied === undefined
    ? { is: "admitted", object: admitted.object }
    : { is: "refused", message: admitted.denied, ofQuota: false };
}

/** Pods by member of a plan's first workload. */
export function division({ workloads }: Plan): Record<string, number> {
  return Object.fromEntries((workloads[0]?.clusters ?? []).map(({ cluster: name, pods }) => [name, pods]));
}

/** Why a member has not more of the first workload's pods. */
export function whyNot({ workloads }: Plan, name: string): string[] {
  return (workloads[0]?.clusters ?? [])
    .filter(({ cluster: one }) => one === name)
    .flatMap(({ whyNot: reasons }) => reasons.map(({ message }) => message));
}
