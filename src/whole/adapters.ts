import type { KubeObject } from "../api/kubernetes.ts";
import type { Registry } from "../clusters/registry.ts";
import type { WholeAdapter } from "../controllers/whole/adapter.ts";
import type { Observed } from "../controllers/whole/model.ts";
import { WholeController, type WholeOptions } from "../controllers/whole/whole-controller.ts";
import { JobAdapter } from "./jobs/adapter.ts";
import { JOBS } from "./jobs/type.ts";
import type { PlaceOptions, QueuedWhole, WholeType } from "./type.ts";
import type { BUILT_IN } from "./types.ts";

/** Options of adapters beside those of their engines. */
export interface AdapterOptions extends WholeOptions {
  readonly rules: PlaceOptions["rules"];
  readonly registry: Registry;
}

/** The engine of a built-in type, as far as those outside of it know. */
export type RunningType = QueuedWhole &
  Pick<WholeController<KubeObject, never, never, never>, "start" | "stop" | "follow">;

/** Makes the engines of the built-in types: a line for each. */
export function runWholeTypes(options: AdapterOptions): readonly RunningType[] {
  const engines: Readonly<Record<keyof typeof BUILT_IN, RunningType>> = {
    jobs: running(JOBS, new JobAdapter(options), options),
  };
  return Object.values(engines);
}

function running<T extends KubeObject, Assignment, Shown, O extends Observed<T, Shown>>(
  type: WholeType<T>,
  adapter: WholeAdapter<T, Assignment, Shown, O>,
  options: AdapterOptions,
): RunningType {
  const engine = new WholeController(adapter, options);
  return {
    start: () => engine.start(),
    stop: () => engine.stop(),
    follow: (events) => engine.follow(events),
    work: () => engine.objectsEverywhere().map((object) => type.workOf(object)),
    inMember: (cluster) => engine.inMember(cluster).map((object) => type.inMember(object)),
  };
}
