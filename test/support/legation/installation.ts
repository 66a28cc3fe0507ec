import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { apiRequest } from "../clusters/api-request.ts";
import type { Cluster } from "../clusters/types.ts";
import { legation, MAIN } from "./cli.ts";

/** The parts of an installation. */
export interface Installation {
  /** Address of the webhook for the API server. */
  readonly webhookUrl: string;
  /** Script to install with. */
  readonly main: string;
}

/** Installs Legation on the host, unless this very installation is there from before. */
export async function ensureInstalled(host: Cluster, installation: Installation): Promise<void> {
  const { webhookUrl, main } = installation;
  if (main === MAIN && notedUrl(host) === webhookUrl && (await calledAt(host, webhookUrl))) return;
  await legation(["install", `--kubeconfig=${host.kubeconfig}`, `--webhook-url=${webhookUrl}`], { main });
  writeFileSync(noteFile(host), main === MAIN ? webhookUrl : "");
}

/** The port of this machine at which the host's API server looks for these sources' webhook; undefined: at none. */
export function installedPort(host: Cluster): number | undefined {
  const url = notedUrl(host);
  return url === undefined ? undefined : Number(new URL(url).port);
}

/** Reports whether the API server calls the webhook at this address. */
async function calledAt(host: Cluster, url: string): Promise<boolean> {
  const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/legation";
  const { status, text } = await apiRequest(host, "GET", path);
  return status === 200 && text.includes(`"${url}/`);
}

// The folder is removed with the cluster.
function noteFile({ kubeconfig }: Cluster): string {
  return join(dirname(kubeconfig), "legation-webhook");
}

function notedUrl(host: Cluster): string | undefined {
  const file = noteFile(host);
  const url = existsSync(file) ? readFileSync(file, "utf8") : "";
  return url === "" ? undefined : url;
}
