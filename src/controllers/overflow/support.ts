import { z } from "zod";
import type { ClusterClient } from "../../kube/client.ts";

// From this minor version of 1 on, API servers copy a Binding's labels to the pod (KEP-4742, on by default).
const FIRST_MINOR = 35;
const versionAnswer = z.object({ major: z.string(), minor: z.string() });

/** Whether the host's API server makes a pod a proxy in its Binding: without that, a pod could be bound and nobody know. */
export async function bindsLabels(host: ClusterClient, signal: AbortSignal): Promise<boolean> {
  return copiesLabels(await host.raw({ method: "GET", path: "/version", signal }));
}

/** The same, of an API server's answer at `/version`. */
export function copiesLabels(answer: unknown): boolean {
  const parsed = versionAnswer.safeParse(answer);
  if (!parsed.success) return false;
  // Vendors write `35+`.
  const [major, minor] = [parsed.data.major, parsed.data.minor].map((text) => Number.parseInt(text, 10));
  return (major ?? 0) > 1 || (major === 1 && (minor ?? 0) >= FIRST_MINOR);
}
