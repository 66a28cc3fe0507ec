import { z } from "zod";
import { MANAGED_BY_LABEL } from "../../../api/keys.ts";
import type { KubeObject } from "../../../api/kubernetes.ts";
import { counted } from "../../../api/wording.ts";
import { DEFAULT_HOST_NAME } from "../../../clusters/host-name.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { deployments } from "../../../kube/resources.ts";
import { applyManifest } from "../../install/apply.ts";
import { type HelmRelease, type InstalledSettings, standing } from "../../install/installed.ts";
import { planInstall, withImage } from "../../install/objects.ts";
import { atMost } from "../../shared/at-most.ts";
import { imageOf } from "../../shared/deployment-image.ts";
import { Discovery } from "../../shared/discovery.ts";
import { Failure } from "../../shared/failure.ts";
import { type Manifest, shippedManifests, withParts } from "../../shared/manifests.ts";
import { objectText, some } from "../../shared/output.ts";
import type { InstalledProcess } from "../../version/installed.ts";
import { problemOf } from "./check.ts";
import { type Finding, fail, forbidden, ok, skip, warn } from "./finding.ts";

// An installation has about sixty objects.
const AT_ONCE = 8;

/** The outcome of a server-side dry run of one object. */
export interface DryRunResult {
  readonly kind: string;
  readonly object: string;
  readonly is: "same" | "missing" | "different" | "forbidden" | "unknown";
  /** Words of the API server. */
  readonly problem?: string;
}

/** Reads what is installed, and the objects that `legation install` would apply. Rejects with KubeError. */
export async function readInstallation(
  host: ClusterClient,
  version: string,
  signal: AbortSignal,
): Promise<{ readonly before: InstalledSettings; readonly wanted: readonly Manifest[] }> {
  const own = await shippedManifests();
  const before = await standing(host, own, signal);
  const { relay, mcs } = before;
  const manifests = await withParts(own, { access: before.access !== undefined, relay, mcs });
  const { apply } = planInstall(manifests, {
    webhookUrl: before.webhookUrl,
    accessAddress: before.access?.address,
    image: before.ownImage,
    clusterName: before.clusterName ?? DEFAULT_HOST_NAME,
    network: before.network,
    mcs,
    shards: before.shards,
    // The version has a finding of its own.
    version: before.version ?? version,
  });
  return { before, wanted: apply };
}

/** Compares what is installed with what this version installs. Resolves to one finding if another version is installed. */
export async function installedObjectFindings(
  host: ClusterClient,
  version: string,
  { before, wanted }: { readonly before: InstalledSettings; readonly wanted: readonly Manifest[] },
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (before.version !== undefined && before.version !== version) {
    const what = `objects are not compared: version ${before.version} is installed, and this command is ${version}`;
    return [skip(what, `use version ${before.version} of the command line, or upgrade what is installed`)];
  }
  const compared = await compareObjects(host, wanted, before.helmRelease, signal);
  return objectFindings(compared, repairOf(before.helmRelease));
}

/** Returns the command that installs what is missing. */
export function repairOf(release: HelmRelease | undefined): string {
  if (release === undefined) return "legation install";
  return `helm upgrade ${release.name} CHART --namespace ${release.namespace} --reset-then-reuse-values`;
}

/** Compares each object with the host's by a dry run of what `legation install` does. */
async function compareObjects(
  host: ClusterClient,
  wanted: readonly Manifest[],
  release: HelmRelease | undefined,
  signal: AbortSignal,
): Promise<readonly DryRunResult[]> {
  const options = { dryRun: true, adapt: release === undefined ? undefined : asReleased };
  const discovery = new Discovery(host, signal);
  return atMost(AT_ONCE, wanted, async (manifest) => {
    const { kind, metadata } = manifest;
    const object = objectText(kind, metadata);
    try {
      const { change } = await applyManifest(manifest, { client: host, discovery, signal }, options);
      return { kind, object, is: change === "created" ? "missing" : change === "unchanged" ? "same" : "different" };
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof Failure) return { kind, object, is: "unknown", problem: error.message };
      if (!isKubeError(error)) throw error;
      // A dry run does not create the namespace of the next object.
      if (error.code === "NotFound") return { kind, object, is: "missing" };
      return { kind, object, is: error.code === "Forbidden" ? "forbidden" : "unknown", problem: problemOf(error) };
    }
  });
}

/** Takes from the installed object what Helm and the values of a release set: the installer's label and the image. */
function asReleased(manifest: Manifest, installed: KubeObject | undefined): Manifest {
  if (installed === undefined) return manifest;
  const { [MANAGED_BY_LABEL]: _, ...labels } = installedLabels.parse(manifest.metadata.labels);
  const installer = installed.metadata?.labels?.[MANAGED_BY_LABEL];
  const own = installer === undefined ? labels : { ...labels, [MANAGED_BY_LABEL]: installer };
  const released = { ...manifest, metadata: { ...manifest.metadata, labels: own } };
  const image = manifest.kind === deployments.kind ? imageOf(installed) : undefined;
  return image === undefined ? released : withImage(released, image);
}

const installedLabels = z.record(z.string(), z.string()).default({});

// A difference in one of these takes rights, checks or fields away.
const GRAVE: ReadonlySet<string> = new Set([
  "CustomResourceDefinition",
  "ClusterRole",
  "ClusterRoleBinding",
  "Role",
  "RoleBinding",
  "ValidatingAdmissionPolicy",
  "ValidatingAdmissionPolicyBinding",
  "MutatingWebhookConfiguration",
  "ValidatingWebhookConfiguration",
  "APIService",
]);

/** Judges the compared objects, CustomResourceDefinitions and policies apart. */
export function objectFindings(compared: readonly DryRunResult[], repair: string): Finding[] {
  const kinds = [
    ["CustomResourceDefinitions", ({ kind }: DryRunResult) => kind === "CustomResourceDefinition"],
    ["admission policies and their bindings", ({ kind }: DryRunResult) => kind.startsWith("ValidatingAdmissionPolicy")],
    ["rights of webhook and controller", ({ kind }: DryRunResult) => /Role(Binding)?$/.test(kind)],
    ["webhook configurations", ({ kind }: DryRunResult) => kind.endsWith("WebhookConfiguration")],
  ] as const;
  const named = kinds.map(([name, isOf]) => [name, compared.filter(isOf)] as const);
  const others = compared.filter((each) => !kinds.some(([, isOf]) => isOf(each)));
  return [...named, ["other objects", others] as const].flatMap(([name, of]) => partFindings(name, of, repair));
}

function partFindings(name: string, compared: readonly DryRunResult[], repair: string): Finding[] {
  const by = Object.groupBy(compared, ({ is }) => is);
  const { missing = [], different = [], forbidden: denied = [], unknown = [], same = [] } = by;
  const names = (of: readonly DryRunResult[]): string => some(of.map(({ object }) => object));
  const findings: Finding[] = [];
  if (missing.length > 0) findings.push(fail(`${name}: missing: ${names(missing)}`, repair));
  if (different.length > 0) {
    const what = `${name}: not as this version installs them: ${names(different)}`;
    findings.push(different.some(({ kind }) => GRAVE.has(kind)) ? fail(what, repair) : warn(what, repair));
  }
  for (const { object, problem } of unknown)
    findings.push(fail(`${object}: ${problem ?? "cannot be checked"}`, repair));
  if (denied.length > 0) {
    const what = `${name}: ${counted(denied.length, "object")} not compared: you may not dry-run their change`;
    findings.push(forbidden(what));
  }
  if (same.length === compared.length && same.length > 0) {
    findings.push(ok(`${name}: ${same.length} as this version installs them`));
  }
  return findings;
}

/** Judges a Deployment by the pods that are ready. */
export function partFinding({ component, namespace, replicas, pods }: InstalledProcess): Finding {
  const name = `legation-${component}`;
  const ready = pods.filter((pod) => pod.ready).length;
  const what = `${name}: ${ready} of ${counted(replicas, "replica")} ready`;
  if (ready >= replicas && ready > 0) return ok(what);
  const remedy = `kubectl -n ${namespace} describe deployment ${name}; kubectl -n ${namespace} logs deployment/${name}`;
  return ready === 0 ? fail(what, remedy) : warn(what, remedy);
}
