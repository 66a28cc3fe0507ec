import { z } from "zod";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";

// Longer than any answer takes that comes at all; the API server takes no more.
const TIMEOUT_SECONDS = 30;
const OBJECT = "mutatingwebhookconfigurations/legation";
const configuration = z.looseObject({ webhooks: z.array(z.unknown()) });

/**
 * What was installed lets reviews take so long that a busy machine refuses no pod: only a webhook that is gone, or that says no, does.
 * Another installation takes it back.
 */
export async function patientAdmission(host: Cluster): Promise<void> {
  const { webhooks } = configuration.parse(JSON.parse(await kubectl(host, ["get", OBJECT, "-o", "json"])));
  const patch = webhooks.map((_, index) => ({
    op: "replace",
    path: `/webhooks/${index}/timeoutSeconds`,
    value: TIMEOUT_SECONDS,
  }));
  await kubectl(host, ["patch", OBJECT, "--type=json", `--patch=${JSON.stringify(patch)}`]);
}
