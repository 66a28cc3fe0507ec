import type { DevicesStatus } from "../api/cluster-status.ts";
import { jsonEqual } from "../api/json.ts";

/** The devices of a member, as whoever reads them last found them. */
export class KnownDevices {
  readonly #onChange: () => void;
  #known: DevicesStatus | undefined;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Undefined while they were never read, or cannot be. */
  get known(): DevicesStatus | undefined {
    return this.#known;
  }

  set known(devices: DevicesStatus | undefined) {
    if (jsonEqual(devices, this.#known)) return;
    this.#known = devices;
    this.#onChange();
  }
}
