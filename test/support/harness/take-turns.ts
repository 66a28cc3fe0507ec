import { join } from "node:path";
import { afterAll, beforeEach, expect, inject } from "vitest";
import { auditFromHere } from "../clusters/audit.ts";
import { acquireFirst } from "../clusters/lock.ts";
import { cleanUpFile } from "./after-file.ts";
import { useShared } from "./clusters.ts";
// Brings the type of what global setup provides.
import type {} from "./global-setup.ts";
import { hasOwnClusters, isOnRealNodes, needsPristine } from "./place-of-file.ts";
import { isReserved, takeReservation } from "./reservations.ts";
// What most files need is loaded while they wait for their turn.
import "../delegated/histories.ts";
import "../delegated/pods.ts";
import "../delegated/writes.ts";
import "../write-gate/gated-legation.ts";
import "./clients.ts";
import "./legation.ts";
import "./namespace.ts";
import "./pod-lives.ts";
import "./pods-of.ts";

// A file has clusters to itself: one of the shared sets, or some of its own. Most of every file is waiting.
const { testPath = "" } = expect.getState();
const turn = (name: string): string => join(inject("turns"), `${name}.turn`);
const onRealNodes = isOnRealNodes(testPath);
const kind = onRealNodes ? "real" : "simulated";
const sets = new Map(inject(onRealNodes ? "realSets" : "sets").map((set, number) => [turn(`${kind}-${number}`), set]));
// Where no real node can run, files say why; those with clusters of their own run one at a time.
const alone = sets.size === 0 || hasOwnClusters(testPath);
// kubectl ends before its garbage matters.
process.env.GOGC ??= "400";
// Legation is started hundreds of times: its sources are compiled once.
process.env.NODE_COMPILE_CACHE = join(inject("turns"), "compiled");
const pristine = needsPristine(testPath);
const permitted = (): readonly string[] => {
  if (alone) return [turn("own")];
  const [first = "", ...others] = sets.keys();
  if (pristine) return [first];
  return onRealNodes || !isReserved(inject("turns")) ? [first, ...others] : others;
};
const { path, release } = await acquireFirst(permitted(), () => {});
if (pristine) takeReservation(inject("turns"), testPath);
const set = alone ? undefined : sets.get(path);
if (set !== undefined) {
  useShared(set);
  set.clusters.forEach(auditFromHere);
}
// Registered first, so it comes last, after the file's own.
afterAll(async () => {
  try {
    await cleanUpFile();
  } finally {
    release();
  }
});
// The runner shows of an attempt that failed only that there was another.
beforeEach(({ onTestFailed }) => {
  onTestFailed(({ task: { name, result } }) => {
    const { message, diff = "" } = result?.errors?.at(-1) ?? {};
    process.stderr.write(`failed at ${new Date().toISOString()}: ${name}: ${message}\n${diff}\n`);
  });
});
