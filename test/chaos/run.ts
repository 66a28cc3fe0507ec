import { setTimeout as sleep } from "node:timers/promises";
import { DELEGATE_UID_ANNOTATION } from "../../src/api/keys.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { isDeleting, isTerminal } from "../../src/pods/phase.ts";
import { watchPods } from "../support/delegated/histories.ts";
import { overlaps, podLives } from "../support/harness/pod-lives.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";
import { act, REUSED_NAME } from "./deeds.ts";
import { cordon, inject, type Scene } from "./faults.ts";
import { type Fault, planOf } from "./plan.ts";

/** What a run did, and what went wrong. */
export interface ChaosReport {
  readonly seed: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly deeds: Readonly<Record<string, number>>;
  /** Proxies that ever were. */
  readonly pods: number;
  /** Delegates that ever were, in all members. */
  readonly delegates: number;
  /** From the last mending to rest. */
  readonly restMs: number;
  readonly violations: readonly string[];
}

const REST_MS = 150_000;
// What looks like rest for a moment only is none.
const STILL_MS = 2_000;
const ORDER = ["None", "Pending", "Running", "Succeeded", "Failed"];

/** Lets everything of a seed's plan happen, mends what is broken, waits for rest, and checks the rules. */
export async function runChaos(
  scene: Scene,
  options: { readonly seed: number; readonly lengthMs: number; readonly faults?: readonly Fault[] },
): Promise<ChaosReport> {
  const { seed, lengthMs } = options;
  const { histories, stop } = await watchPods(scene.clients.host, scene.namespace);
  const faults: Record<string, number> = {};
  const deeds: Record<string, number> = {};
  const begun = performance.now();
  // Faults of one process follow each other; what cannot be done while something else is broken is left out.
  let breaking: Promise<void> = Promise.resolve();
  const acting: Promise<void>[] = [];
  for (const happening of planOf(seed, lengthMs, options.faults)) {
    await sleep(Math.max(0, begun + happening.at - performance.now()));
    if (happening.type === "deed") {
      const count = (): void => {
        deeds[happening.deed] = (deeds[happening.deed] ?? 0) + 1;
      };
      acting.push(act(scene, happening).then(count, () => undefined));
    } else {
      breaking = breaking
        .then(() => inject(scene, happening))
        .then(
          () => {
            faults[happening.fault] = (faults[happening.fault] ?? 0) + 1;
          },
          () => undefined,
        );
    }
  }
  await Promise.all([breaking, ...acting]);
  await mendAll(scene);
  const mended = performance.now();
  const violations: string[] = [];
  try {
    await eventually(
      async () => {
        const before = await restless(scene);
        await sleep(STILL_MS);
        const wrong = [...before, ...(await restless(scene))];
        if (wrong.length > 0) throw new Error(wrong.join("; "));
        return true;
      },
      { timeoutMs: REST_MS, intervalMs: 500, what: "rest" },
    );
  } catch (error) {
    violations.push(error instanceof Error ? error.message : String(error));
  }
  const restMs = Math.round(performance.now() - mended);
  await stop();
  for (const { name, phases } of histories.values()) {
    const order = phases.map(({ phase }) => ORDER.indexOf(phase));
    const back = order.some((place, index) => index > 0 && place < (order[index - 1] ?? 0));
    const twice = phases.filter(({ phase }) => phase === "Succeeded" || phase === "Failed").length > 1;
    if (back || twice) violations.push(`the phase of ${name} went ${phases.map(({ phase }) => phase).join(", ")}`);
  }
  const lives = (
    await Promise.all(Object.values(scene.members).map((member) => podLives(member, scene.namespace)))
  ).flat();
  for (const [one, other] of overlaps(lives.filter(({ name }) => name !== REUSED_NAME))) {
    violations.push(`two delegates at once: ${JSON.stringify([one, other])}`);
  }
  return { seed, faults, deeds, pods: histories.size, delegates: lives.length, restMs, violations };
}

async function mendAll(scene: Scene): Promise<void> {
  const { host, members, legation, second, gate } = scene;
  await Promise.all([host, members.west, members.east].map((cluster) => cluster.mend()));
  gate?.set(undefined);
  if (second === undefined) {
    legation.controller.thaw();
  } else {
    // Either may have slept through the other's lead, and is about to end.
    await second.stop();
    await legation.controller.stop("SIGKILL");
  }
  await legation.controller.start();
  await Promise.all(Object.keys(members).map((member) => cordon(scene, member, false)));
}

/** What is not yet as it must be at the end. */
async function restless({ clients, namespace }: Scene): Promise<string[]> {
  const [proxies, ...held] = await Promise.all(
    [clients.host, clients.west, clients.east].map((client) => podsOf(client, namespace)),
  );
  const byUid = new Map((proxies ?? []).map((proxy) => [proxy.metadata.uid, proxy]));
  const wrong: string[] = [];
  const delegates = new Map<string, number>();
  for (const delegate of held.flat()) {
    const { name, uid } = delegate.metadata;
    const proxy = byUid.get(ownerOf(delegate)?.uid ?? "");
    if (proxy === undefined) {
      wrong.push(`${name}: a delegate without a proxy`);
      continue;
    }
    delegates.set(proxy.metadata.uid, (delegates.get(proxy.metadata.uid) ?? 0) + 1);
    if (proxy.metadata.annotations?.[DELEGATE_UID_ANNOTATION] !== uid) wrong.push(`${name}: not the recorded delegate`);
    if (proxy.status?.phase !== delegate.status?.phase) {
      wrong.push(`${name}: ${proxy.status?.phase}, and its delegate ${delegate.status?.phase}`);
    }
  }
  for (const proxy of byUid.values()) {
    const { name, uid } = proxy.metadata;
    if (isDeleting(proxy)) wrong.push(`${name}: is still being deleted`);
    else if (!isTerminal(proxy) && proxy.status?.phase !== "Running") wrong.push(`${name}: ${proxy.status?.phase}`);
    else if (!isTerminal(proxy) && delegates.get(uid) !== 1)
      wrong.push(`${name}: ${delegates.get(uid) ?? 0} delegates`);
  }
  return wrong;
}
