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
  const rows: Row[] = [["command line", client.version, `Node.js ${client.node}`]];
  if (host === undefined) return rowsText(rows, width);
  rows.push(["host", host.kubernetes, `Kubernetes at ${host.server}`]);
  const { legation } = host;
  if (legation === undefined) return `${rowsText(rows, width)}\nLegation is not installed on the host`;
  rows.push(["installation", legation.version ?? "-", installationText(legation)]);
  rows.push(...(legation.processes ?? []).flatMap(processRows));
  rows.push(...(legation.members ?? []).flatMap(memberRows));
  return [rowsText(rows, width), ...advice(client, legation)].join("\n");
}

function rowsText(rows: readonly Row[], width: number | undefined): string {
  return table(["WHAT", "VERSION", "DETAILS"], rows, width);
}

function installationText({ hostName, installer, processes }: LegationVersions): string {
  const by = installer === undefined ? [] : [installer === "Helm" ? "by Helm" : "by `legation install`"];
  const name = hostName === undefined ? [] : [`called "${hostName}"`];
  const outside =
    processes?.length === 0 ? ["webhook and controller run outside the cluster: see their own version"] : [];
  const hidden = processes === undefined ? ["you may not read its Deployments and pods"] : [];
  return [...by, ...name, ...outside, ...hidden].join(", ");
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

function memberRows({ name, kubernetes, connection, agent }: MemberVersion): Row[] {
  const reached =
    connection === undefined ? "not reached yet" : connection === "Agent" ? "through its agent" : "directly";
  const row: Row = [`member ${name}`, kubernetes ?? "-", reached];
  return connection === "Agent" ? [row, [`agent of ${name}`, agent ?? "-", ""]] : [row];
}

function advice({ version }: ClientVersion, { version: installed, processes = [] }: LegationVersions): string[] {
  const lines: string[] = [];
  if (installed !== undefined && installed !== version) {
    lines.push(`the command line should have the version that is installed, ${installed}`);
  }
  if (processes.length > 0 && installed === undefined) {
    lines.push("the Deployments have several versions: an upgrade was not finished; repeat it");
  }
  return lines;
}
