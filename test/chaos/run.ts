import { setTimeout as sleep } from "node:timers/promises";
import { watchPods } from "../support/delegated/histories.ts";
import { eventually } from "../support/harness/wait.ts";
import { mendAgent } from "./agents.ts";
import { act } from "./deeds.ts";
import { cordon, inject } from "./faults.ts";
import { completeGangs, gangsApart, wrongFollowed } from "./followed.ts";
import { restlessJobs } from "./objects/jobs.ts";
import { CUSTOM_KINDS } from "./objects/kinds.ts";
import { startOperator } from "./objects/operator.ts";
import { restlessObjects } from "./objects/rest.ts";
import { foreignObjectWrites, objectTwins, watchObjects, writesSince } from "./objects/rules.ts";
import { allowAgain, define } from "./objects/setup.ts";
import { planOf, type Repertoire } from "./plan.ts";
import { type QueueHistories, restlessQueues, watchQueues } from "./queues/rules.ts";
import { mendQueues } from "./queues/setup.ts";
import { restless } from "./rest.ts";
import { delegateLives, foreignWrites, twins, wrongHistories } from "./rules.ts";
import type { Scene } from "./scene.ts";
import { wrongServices } from "./services/rules.ts";

/** The record of a run, and its violations. */
export interface ChaosReport {
  readonly seed: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly deeds: Readonly<Record<string, number>>;
  /** Proxies that ever were. */
  readonly pods: number;
  /** Delegates that ever were, in all members. */
  readonly delegates: number;
  /** Whole Jobs and custom resources that ever were on the host. */
  readonly objects: number;
  /** Workloads that ever were in queues. Undefined without queues. */
  readonly queued: ReturnType<QueueHistories["counts"]> | undefined;
  /** Time from the last repair to rest. */
  readonly restMs: number;
  readonly violations: readonly string[];
}

const REST_MS = 150_000;
const PATIENT = { timeoutMs: 60_000, intervalMs: 1_000 };
// A momentary rest does not count.
const STILL_MS = 2_000;
// Longer than the pauses before a record or a status is written.
const QUIET_MS = 15_000;

/** Lets everything of a seed's plan happen, mends what is broken, waits for rest, and checks the rules. */
export async function runChaos(
  scene: Scene,
  options: { readonly seed: number; readonly lengthMs: number; readonly repertoire?: Repertoire },
): Promise<ChaosReport> {
  const { seed, lengthMs } = options;
  const apart = new Set<string>();
  const { histories, stop } = await watchPods(scene.clients.host, scene.namespace, (pods) => {
    for (const gang of gangsApart(pods)) apart.add(gang);
  });
  const objects = await watchObjects(scene);
  const queues = scene.kueue === undefined ? undefined : await watchQueues(scene);
  const operators = [scene.clients.west, scene.clients.east].map((member) => startOperator(member, scene.namespace));
  const faults: Record<string, number> = {};
  // A fault that fails half-way, a member that leaves and cannot join again, has its effects all the same.
  const begunFaults = new Set<string>();
  const deeds: Record<string, number> = {};
  const begun = performance.now();
  // Faults of one process follow each other; what cannot be done while something else is broken is left out.
  let breaking: Promise<void> = Promise.resolve();
  const acting: Promise<void>[] = [];
  for (const happening of planOf(seed, lengthMs, options.repertoire)) {
    await sleep(Math.max(0, begun + happening.at - performance.now()));
    if (happening.type === "deed") {
      const count = (): void => {
        deeds[happening.deed] = (deeds[happening.deed] ?? 0) + 1;
      };
      acting.push(act(scene, happening).then(count, () => undefined));
    } else {
      breaking = breaking
        .then(() => {
          begunFaults.add(happening.fault);
          return inject(scene, happening);
        })
        .then(
          () => {
            faults[happening.fault] = (faults[happening.fault] ?? 0) + 1;
          },
          () => undefined,
        );
    }
  }
  await breaking;
  await mendAll(scene);
  await Promise.all(acting);
  if (scene.hasFollowed === true) await completeGangs(scene);
  const mended = performance.now();
  const violations: string[] = [];
  let stillSince = "";
  const left = begunFaults.has("member leaves and joins again");
  const lostData = left || begunFaults.has("namespace deleted in its member");
  const problems = async (): Promise<string[]> => [
    ...(await restless(scene, lostData)),
    ...(await restlessObjects(scene, left)),
    ...(await restlessJobs(scene, lostData)),
    ...(await wrongServices(scene)),
    ...(scene.hasFollowed === true ? await wrongFollowed(scene) : []),
    ...(scene.kueue === undefined ? [] : await restlessQueues(scene, left)),
  ];
  try {
    await eventually(
      async () => {
        // As its Deployment does, where a busy machine cost it the lease.
        await scene.legation.controller.start();
        const before = await problems();
        stillSince = new Date().toISOString();
        await sleep(STILL_MS);
        const wrong = [...before, ...(await problems())];
        if (wrong.length > 0) throw new Error(wrong.join("; "));
        return true;
      },
      { timeoutMs: REST_MS, intervalMs: 500, what: "rest" },
    );
    if (scene.others !== undefined) await sleep(QUIET_MS);
    violations.push(...(await writesSince(scene, stillSince)));
  } catch (error) {
    violations.push(error instanceof Error ? error.message : String(error));
  }
  const restMs = Math.round(performance.now() - mended);
  await Promise.all([stop(), objects.stop(), queues?.stop(), ...operators.map((operator) => operator.stop())]);
  const lives = await delegateLives(scene);
  violations.push(
    ...apart,
    ...(queues?.wrong() ?? []),
    ...wrongHistories(histories),
    ...twins(lives, { reused: !left, forced: scene.forced }),
    ...(await foreignWrites(scene)),
  );
  violations.push(...objects.wrong, ...(await objectTwins(scene)), ...(await foreignObjectWrites(scene)));
  return {
    seed,
    faults,
    deeds,
    pods: histories.size,
    objects: objects.count(),
    delegates: lives.length,
    queued: queues?.counts(),
    restMs,
    violations,
  };
}

async function mendAll(scene: Scene): Promise<void> {
  const { host, members, legation, others, link, gate, setClock } = scene;
  await Promise.all([host, members.west, members.east].map((cluster) => cluster.mend()));
  await Promise.all(Object.values(scene.agents ?? {}).map(mendAgent));
  gate?.release();
  await link?.set({ kind: "forward" });
  setClock?.(0);
  if (others === undefined) {
    legation.controller.thaw();
  } else {
    // Each may have slept through another's lead, and is about to end.
    await Promise.all(others.map((other) => other.stop()));
    await legation.controller.stop("SIGKILL");
  }
  await legation.controller.start();
  for (const [name, member] of Object.entries(members)) {
    // The member may have left and failed to join again.
    await eventually(() => legation.join(name, member).then(() => true), PATIENT);
    await eventually(() => cordon(scene, name, false).then(() => true), PATIENT);
  }
  if (scene.kueue !== undefined) await eventually(() => mendQueues(scene).then(() => true), PATIENT);
  for (const kind of scene.kinds) await allowAgain(scene.clients.host, kind);
  for (const kind of CUSTOM_KINDS.filter((one) => scene.kinds.includes(one))) {
    for (const member of [scene.clients.west, scene.clients.east]) await define(member, kind);
  }
}
