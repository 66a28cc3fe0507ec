import { afterEach, beforeEach, expect, test } from "vitest";
import { startControllers } from "../../../src/controllers/main.ts";
import { controllersOf } from "../../bench/scale/controllers.ts";
import { type Fleet, fleetOf } from "../../bench/scale/fleet.ts";
import { eventually } from "../../support/harness/wait.ts";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await fleetOf(2, 4);
});
afterEach(() => fleet.close());

test("controllers that are told to end before they have started leave no watch behind", async () => {
  const ended = new AbortController();
  const watches = (): number => [fleet.host, ...fleet.members].reduce((sum, { openWatches }) => sum + openWatches, 0);
  fleet.host.silent.add("pods");
  const options = controllersOf(fleet);
  const starting = startControllers(options, ended.signal);
  const refused = expect(starting).rejects.toThrow("the lease was lost");
  // Clusters, Secrets, nodes and what is read in members.
  await eventually(() => watches() > 6, { intervalMs: 20 });
  ended.abort(new Error("the lease was lost"));
  await refused;
  await eventually(() => watches() === 0, { intervalMs: 20 });
  await options.host.close();
});
