import { counted } from "../../api/wording.ts";
import { table } from "../shared/output.ts";
import type { HostVersions, InstalledProcess, LegationVersions, MemberVersion } from "./installed.ts";

export interface ClientVersion {
  readonly version: string;
  readonly node: string;
}

type Row = readonly [what: string, version: string, details: string];

/** Returns the versions as a table. `host` is absent if only the command line's is asked for. */
export function versionText(client: ClientVersion, host?: HostVersions, width?: number): string {
  const legation = host?.legation;
  const rows: readonly Row[] = [
    ["command line", client.version, `Node.js ${client.node}`],
    ...(host === undefined ? [] : [["host", host.kubernetes, `Kubernetes at ${host.server}`] as const]),
    ...(legation === undefined ? [] : [["installation", legation.version ?? "-", installationText(legation)] as const]),
    ...(legation?.processes ?? []).flatMap(processRows),
    ...(legation?.members ?? []).flatMap(memberRows),
  ];
  const isMissing = host !== undefined && legation === undefined;
  const notes = isMissing ? ["Legation is not installed on the host"] : advice(client, legation ?? {});
  return [table(["WHAT", "VERSION", "DETAILS"], rows, width), ...notes].join("\n");
}

function installationText({ hostName, installer, processes }: LegationVersions): string {
  const parts = [
    installer && (installer === "Helm" ? "by Helm" : "by `legation install`"),
    hostName !== undefined && `called "${hostName}"`,
    processes?.length === 0 && "webhook and controller run outside the cluster: see their own version",
    processes === undefined && "you may not read its Deployments and pods",
  ];
  return parts.filter(Boolean).join(", ");
}

/** Returns a row for each version and image of which a process has pods: several while it is replaced. */
function processRows({ component, image, replicas, pods }: InstalledProcess): Row[] {
  const groups = Map.groupBy(pods, (pod) => JSON.stringify([pod.version, pod.image]));
  if (groups.size === 0) return [[component, "-", `no pods of ${replicas}, ${image ?? "no image"}`]];
  return [...groups.values()].map((group): Row => {
    const ready = group.filter((pod) => pod.ready).length;
    const details = `${ready} of ${counted(group.length)} ready, ${group[0]?.image ?? "no image"}`;
    return [component, group[0]?.version ?? "-", details];
  });
}

const REACHED = { Direct: "directly", Agent: "through its agent", unknown: "not reached yet" };

function memberRows({ name, kubernetes = "-", connection, agent = "-" }: MemberVersion): Row[] {
  const row: Row = [`member ${name}`, kubernetes, REACHED[connection ?? "unknown"]];
  return connection === "Agent" ? [row, [`agent of ${name}`, agent, ""]] : [row];
}

function advice({ version }: ClientVersion, { version: installed, processes = [] }: LegationVersions): string[] {
  if (installed !== undefined && installed !== version) {
    return [`the command line should have the version that is installed, ${installed}`];
  }
  const isUnfinished = processes.length > 0 && installed === undefined;
  return isUnfinished ? ["the Deployments have several versions: an upgrade was not finished; repeat it"] : [];
}
