import { afterEach, beforeEach } from "vitest";
import type { ControllersOptions } from "../../../src/controllers/options.ts";
import { type RunningControllers, startControllers } from "../../../src/controllers/start-controllers.ts";
import { controllersOf } from "../../bench/scale/controllers.ts";
import { type Fleet, fleetOf } from "../../bench/scale/fleet.ts";

/** A fleet of clusters that are not real, anew for each test, and the controllers of its host. */
export class FleetOfTest {
  #fleet: Fleet | undefined;
  #controllers: RunningControllers | undefined;

  get fleet(): Fleet {
    if (this.#fleet === undefined) throw new Error("The fleet exists within tests only.");
    return this.#fleet;
  }

  async begin(members: number, proxies: number): Promise<void> {
    this.#fleet = await fleetOf(members, proxies);
  }

  /** Starts the controllers, which stop when the test ends. */
  async start(options: Partial<ControllersOptions> = {}): Promise<void> {
    const all = { ...controllersOf(this.fleet), ...options };
    this.#controllers = await startControllers(all, new AbortController().signal);
  }

  async end(): Promise<void> {
    await this.#controllers?.stop();
    this.#controllers = undefined;
    await this.#fleet?.close();
  }
}

/** Gives each test of the file a fleet in which `proxies` pods run, spread over the members. */
export function useFleet(members: number, proxies: number): FleetOfTest {
  const running = new FleetOfTest();
  beforeEach(() => running.begin(members, proxies));
  afterEach(() => running.end());
  return running;
}
