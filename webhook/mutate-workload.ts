import fastJsonPatch from "fast-json-patch";
import { asksForDelegation, authorAnnotations, parsePlacement } from "../src/api/annotations.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { allowed, denied, patched, type Verdict } from "./responses.ts";

/** Where each kind of workload keeps its pod template. */
const TEMPLATE_PATHS: Readonly<Record<string, readonly string[]>> = {
  Deployment: ["spec", "template"],
  ReplicaSet: ["spec", "template"],
  StatefulSet: ["spec", "template"],
  ReplicationController: ["spec", "template"],
  Job: ["spec", "template"],
  CronJob: ["spec", "jobTemplate", "spec", "template"],
};

/**
 * Copies what the author wrote on a workload into its pod template, so that its pods ask for delegation. What is taken off
 * the workload is taken off the template too; what stands in the template alone is the template's own.
 */
export function mutateWorkload({ object, oldObject, kind, operation }: AdmissionRequest): Verdict {
  if (object === undefined || (operation !== "CREATE" && operation !== "UPDATE")) return allowed();
  // A template that has an owner is the owner's: changed here, its owner would make another one, for ever.
  if (object.metadata.ownerReferences?.some(({ controller }) => controller === true)) return allowed();

  const written = authorAnnotations(object.metadata.annotations);
  const parsed = parsePlacement(written);
  if (!parsed.ok) return denied(parsed.problems.map(({ message }) => `metadata.annotations: ${message}`));
  if (kind.kind === "DaemonSet") {
    return asksForDelegation(parsed.placement)
      ? denied([
          "metadata.annotations: a DaemonSet runs one pod on each node of its own cluster, and a member is no such node; " +
            "create the DaemonSet in the member, or remove the legation.dev annotations",
        ])
      : allowed();
  }

  const path = TEMPLATE_PATHS[kind.kind];
  const template = path === undefined ? undefined : templateOf(object, path);
  if (path === undefined || template === undefined) return allowed();
  const current = stringMap(record(template.metadata).annotations);
  const wanted = { ...current };
  const warnings: string[] = [];
  for (const [key, value] of Object.entries(written)) {
    const before = current[key];
    if (before === undefined || before === authorAnnotations(oldObject?.metadata.annotations)[key]) wanted[key] = value;
    else if (before !== value) {
      warnings.push(`${key}: the pod template says ${JSON.stringify(before)}, which counts for its pods`);
    }
  }
  for (const [key, value] of Object.entries(authorAnnotations(oldObject?.metadata.annotations))) {
    if (!(key in written) && current[key] === value) delete wanted[key];
  }

  const patch = fastJsonPatch.compare({ annotations: current }, { annotations: wanted });
  if (patch.length > 0 && kind.kind === "Job" && operation === "UPDATE") {
    return allowed(["metadata.annotations: a Job's pod template cannot change: its pods keep the earlier annotations"]);
  }
  return patched(rooted(patch, template, path), warnings);
}

/** The operations with paths from the object's root; containers that the template lacks are made first. */
function rooted(
  patch: readonly fastJsonPatch.Operation[],
  template: Readonly<Record<string, unknown>>,
  path: readonly string[],
): fastJsonPatch.Operation[] {
  if (patch.length === 0) return [];
  const root = `/${path.join("/")}/metadata`;
  const made: fastJsonPatch.Operation[] = [];
  if (!isRecord(template.metadata)) made.push({ op: "add", path: root, value: { annotations: {} } });
  else if (!isRecord(template.metadata.annotations)) {
    made.push({ op: "add", path: `${root}/annotations`, value: {} });
  }
  return [...made, ...patch.map((operation) => ({ ...operation, path: root + operation.path }))];
}

function templateOf(object: ReviewedObject, path: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  let value: unknown = object;
  for (const field of path) value = isRecord(value) ? value[field] : undefined;
  return isRecord(value) ? value : undefined;
}

function stringMap(value: unknown): Record<string, string> {
  const entries = Object.entries(record(value)).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return Object.fromEntries(entries);
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
