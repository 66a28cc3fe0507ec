import { join } from "node:path";
import { afterAll, expect, inject } from "vitest";
import { acquireLock } from "../clusters/lock.ts";
// Brings the type of what global setup provides.
import type {} from "./global-setup.ts";

// Two files run at a time: one on the clusters that files share, and one on real nodes of its own. Most of either is waiting.
const { testPath = "" } = expect.getState();
const group = testPath.includes("/real-nodes/") ? "real-nodes" : "shared";
const release = await acquireLock(join(inject("clusters").directory, `${group}.turn`), () => undefined);
// Registered first, so it comes last, after the file's own.
afterAll(release);
