import { ignoring } from "../../kube/errors.ts";
import { Failure } from "../shared/failure.ts";
import { until } from "../shared/wait.ts";

// Each API server follows policies and webhooks by a watch, so it may enforce removed ones for some seconds.
const ADMISSION_LAG_MS = 20_000;

/** Repeats an action until admission lets it through. Returns false on timeout. */
export async function afterAdmission(act: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  const isDone = async (): Promise<boolean> => (await ignoring(act(), "Forbidden")) ?? false;
  return (await until(isDone, { timeoutMs: ADMISSION_LAG_MS, signal })) || (await act());
}

/** Releases an object. Rejects with `Failure` when admission puts Legation's marks back. */
export async function untilReleased(
  object: string,
  release: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  if (await afterAdmission(release, signal)) return;
  throw new Failure("refused", {
    object,
    problem: "has Legation's marks again as soon as they are taken off: an admission webhook puts them back",
    remedy: "look at `kubectl get mutatingwebhookconfigurations`, then run the command again",
  });
}
