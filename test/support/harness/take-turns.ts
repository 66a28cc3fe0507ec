import { join } from "node:path";
import { afterAll, expect, inject } from "vitest";
import { auditFromHere } from "../clusters/audit.ts";
import { clustersOf } from "../clusters/control.ts";
import { acquireFirst, acquireReserved } from "../clusters/lock.ts";
import { startClusters } from "../clusters/start.ts";
import type { Clusters } from "../clusters/types.ts";
import { cleanUpFile } from "./after-file.ts";
import { useShared } from "./clusters.ts";
import { fileCame, noneToCome } from "./files-to-come.ts";
// Brings the type of what global setup provides.
import type {} from "./global-setup.ts";
import { needsUnused, placeOf, sharedPlace, TURNS, turnFile, UNUSED_TURN } from "./place-of-file.ts";
import { untilQuiet } from "./quiet.ts";
import { SETS } from "./sets.ts";
import { tellFailures } from "./tell-failures.ts";
// Modules that most files need load while the file waits for its turn.
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
const turns = inject("turns");
// kubectl ends before its garbage matters, and others want the second processor.
process.env.GOGC ??= "400";
process.env.GOMAXPROCS ??= "1";
// Legation is started hundreds of times: its sources are compiled once.
process.env.NODE_COMPILE_CACHE = join(turns, "compiled");
const wanted = placeOf(testPath);
// Files report why no real node can run.
const place = wanted === "real" && inject("sets").real.length === 0 ? "own" : wanted;
const sharing = sharedPlace(place);
const shared = sharing && { place: sharing, sets: inject("sets")[sharing] };
const permitted = TURNS[place].slice(0, shared?.sets.length).map((name) => turnFile(turns, name));
if (permitted.length === 0)
  throw new Error(`no clusters for ${testPath}: they are started for the files that a run begins with`);
const reserved = needsUnused(testPath) ? acquireReserved(turnFile(turns, UNUSED_TURN)) : undefined;
const { path, release } = reserved ?? (await acquireFirst(permitted, () => {}));
await untilQuiet(turns);
const separate = place === "separate" ? await startSeparate() : undefined;
const set = separate?.info ?? shared?.sets[permitted.indexOf(path)];
if (shared !== undefined) fileCame(turns, shared.place, testPath);
useShared(set);
set?.clusters.forEach(auditFromHere);
tellFailures();
// Registered first, so it comes last, after the file's own.
afterAll(async () => {
  try {
    await cleanUpFile();
    await separate?.stop();
    // Stops clusters without users, which would take processor time from the others.
    if (set !== undefined && shared !== undefined && noneToCome(turns, shared.place)) await clustersOf(set).stop();
  } finally {
    release();
  }
});

/** Starts the file's set. The next file gets the turn if that fails. */
async function startSeparate(): Promise<Clusters> {
  try {
    return await startClusters(SETS.separate);
  } catch (error) {
    release();
    throw error;
  }
}
