import { z } from "zod";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { configMaps } from "../../kube/resources.ts";
import { HOST_CONFIG_NAME } from "./plan.ts";

/** A host's name: what a label value may hold, since people select by it. */
export const hostName: z.ZodType<string> = z
  .string()
  .max(63, { error: "is longer than 63 characters" })
  .regex(/^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/, {
    error: "must be letters, digits, '-', '_' or '.', with a letter or digit first and last; write e.g. berlin-1",
  });

/** The host's name as an earlier installation recorded it: an upgrade keeps it. */
export async function installedName(client: ClusterClient, signal: AbortSignal): Promise<string | undefined> {
  const found = await client.find(configMaps, { namespace: SYSTEM_NAMESPACE, name: HOST_CONFIG_NAME }, { signal });
  return found?.data?.["cluster-name"];
}
