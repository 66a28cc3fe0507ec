import type { Logger } from "../../telemetry/logger.ts";

/** The context of one reconcile. Makes its logger on demand: most reconciles log nothing, and a child logger is dear. */
export class ReconcileContext<Key extends string> {
  readonly key: Key;
  readonly signal: AbortSignal;
  readonly heardAt: number;
  readonly #log: Logger;
  readonly #bindings: Readonly<Record<string, unknown>>;
  #child: Logger | undefined;

  constructor(
    key: Key,
    options: {
      readonly signal: AbortSignal;
      readonly heardAt: number;
      readonly log: Logger;
      readonly bindings: Readonly<Record<string, unknown>>;
    },
  ) {
    this.key = key;
    this.signal = options.signal;
    this.heardAt = options.heardAt;
    this.#log = options.log;
    this.#bindings = options.bindings;
  }

  get log(): Logger {
    this.#child ??= this.#log.child({ object: this.key, ...this.#bindings });
    return this.#child;
  }
}
