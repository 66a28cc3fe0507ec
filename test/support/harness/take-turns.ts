import { join } from "node:path";
import { afterAll, expect, inject } from "vitest";
import { acquireFirst } from "../clusters/lock.ts";
import { cleanUpFile } from "./after-file.ts";
import { useShared } from "./clusters.ts";
// Brings the type of what global setup provides.
import type {} from "./global-setup.ts";
import { isOnRealNodes } from "./place-of-file.ts";

// A file has clusters to itself: one of the shared sets, or real nodes of its own. Most of every file is waiting.
const { testPath = "" } = expect.getState();
const turn = (name: string): string => join(inject("turns"), `${name}.turn`);
const sets = new Map(inject("sets").map((set, number) => [turn(`set-${number}`), set]));
// Real nodes have addresses, and watches of files, that the machine has only so many of.
const onRealNodes = ["real-nodes-0", "real-nodes-1"].map(turn);
// kubectl ends before its garbage matters.
process.env.GOGC ??= "400";
// Legation is started hundreds of times: its sources are compiled once.
process.env.NODE_COMPILE_CACHE = join(inject("turns"), "compiled");
const { path, release } = await acquireFirst(isOnRealNodes(testPath) ? onRealNodes : [...sets.keys()], () => {});
const set = sets.get(path);
if (set !== undefined) useShared(set);
// Registered first, so it comes last, after the file's own.
afterAll(async () => {
  await cleanUpFile();
  release();
});
