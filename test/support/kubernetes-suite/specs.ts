import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseNames } from "./results.ts";
import { hasServiceNetwork, isOfKueue, type SideName } from "./sides.ts";
import type { Suite } from "./suite.ts";

/** A choice among the suite's specs. */
export interface Selection {
  /** Default: all. */
  readonly focus?: RegExp;
  readonly skip?: RegExp;
}

// Volumes that live and end with their pod; the rest of sig-storage is about provisioners.
const EPHEMERAL = "EmptyDir|Projected|ConfigMap|Secrets|Downward API volume|Subpath|HostPath|Volumes|Ephemeral";
const AREAS = new RegExp(
  `\\[sig-(node|apps|auth|api-machinery|cli|instrumentation|network)\\]|\\[sig-storage\\] ((${EPHEMERAL})|.*\\[Conformance\\])`,
);
// Specs for clusters that are set up otherwise, that take minutes each, or that break nodes.
const APART = /\[(Feature:|FeatureGate:[^\]]*\] \[(Alpha|Beta)\]|Disruptive|Flaky|Slow|Alpha|sig-windows)/;

/** Kueue's specs of Jobs, pods and workloads, of which none needs more than Kueue, and pods that run. */
const OF_KUEUE =
  /^(Kueue when |JobSet |Pod groups |Deployment |StatefulSet |Fair Sharing |Hierarchical Cohort |ConcurrentAdmission )/;
const OF_JOBS = /^\[sig-apps\] Job /;
/** Specs with a driver of devices, which a member has and the host has not. */
const OF_DEVICES = /^\[sig-node\] \[DRA\] (control plane|kubelet) /;
/** Specs of Services and names, which need kube-proxy and CoreDNS. */
const OF_NETWORK = /^\[sig-network\] /;
// Beta gates of the Job API are on by default.
const OF_BETA_GATES = /\[FeatureGate:[^\]]*\] \[Beta\]/g;

/** Reports whether nothing else may run beside a spec. */
function isSerial(spec: string): boolean {
  return /\[Serial\]/.test(spec);
}

/**
 * Returns the specs to run: those about pods and workloads, every Conformance spec among them, narrowed by the selection. On the
 * side of whole Jobs those about Jobs alone, and on that of devices, in place of the delegated side, those with a driver of devices.
 */
export function selected(specs: readonly string[], { focus, skip }: Selection, side?: SideName): string[] {
  return specs.filter(
    (spec) =>
      (side !== undefined && isOfKueue(side) ? OF_KUEUE : AREAS).test(spec) &&
      (side !== "whole" || OF_JOBS.test(spec)) &&
      (side !== "devices" || OF_DEVICES.test(spec)) &&
      (side !== "delegated" || !OF_DEVICES.test(spec)) &&
      (side === undefined || hasServiceNetwork(side) || !OF_NETWORK.test(spec)) &&
      (spec.includes("[Conformance]") || !APART.test(textOf(spec))) &&
      (focus === undefined || focus.test(spec)) &&
      (skip === undefined || !skip.test(spec)),
  );
}

/** Returns the spec's text without the marks that tell nothing apart. */
function textOf(spec: string): string {
  return OF_JOBS.test(spec) ? spec.replaceAll(OF_BETA_GATES, "") : spec;
}

/** Divides specs into lists of one process each: serial ones after the others. */
export function batchesOf(specs: readonly string[], size: number): { parallel: string[][]; serial: string[][] } {
  const divided = (some: readonly string[]): string[][] =>
    Array.from({ length: Math.ceil(some.length / size) }, (_, index) => some.slice(index * size, (index + 1) * size));
  return {
    parallel: divided(specs.filter((spec) => !isSerial(spec))),
    serial: divided(specs.filter(isSerial)),
  };
}

/** Returns the full texts of all specs in the suite. */
export async function allSpecs({ program, flags, env }: Suite): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), "legation-specs-"));
  try {
    const report = join(directory, "report.json");
    const dry = [...flags, "--ginkgo.dry-run", `--ginkgo.json-report=${report}`, "--ginkgo.no-color"];
    await promisify(execFile)(program, dry, {
      cwd: directory,
      env: { ...process.env, ...env },
      maxBuffer: 2 ** 28,
    });
    return parseNames(readFileSync(report, "utf8"));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
