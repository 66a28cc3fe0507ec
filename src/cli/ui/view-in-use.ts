import type { Clock, Timer } from "../../runtime/clock.ts";
import type { LiveView } from "./live-view.ts";

// Pages that are loaded again come back at once.
const UNUSED_VIEW_KEPT_MS = 30_000;

/** A live view that runs while somebody looks, and a little longer. */
export class ViewInUse {
  readonly #create: () => LiveView;
  readonly #clock: Clock;
  #view: LiveView | undefined;
  #users = 0;
  #timer: Timer | undefined;

  constructor(create: () => LiveView, clock: Clock) {
    this.#create = create;
    this.#clock = clock;
  }

  get users(): number {
    return this.#users;
  }

  /** Returns the running view. Each call is followed by one of `giveBack`. */
  take(): LiveView {
    this.#users += 1;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#view === undefined) {
      this.#view = this.#create();
      this.#view.start();
    }
    return this.#view;
  }

  giveBack(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#timer = this.#clock.after(UNUSED_VIEW_KEPT_MS, () => void this.stop());
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const view = this.#view;
    this.#view = undefined;
    await view?.stop();
  }
}
