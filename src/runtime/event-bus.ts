/** Events within this process. Listeners are called at once, in order. One that throws ends the event. */
export class Events<Payloads extends { readonly [Name in keyof Payloads]: readonly unknown[] }> {
  readonly #listeners: { [Name in keyof Payloads]?: ((...payload: Payloads[Name]) => void)[] } = {};

  on<Name extends keyof Payloads>(name: Name, listener: (...payload: Payloads[Name]) => void): void {
    const others = this.#listeners[name];
    if (others === undefined) this.#listeners[name] = [listener];
    else others.push(listener);
  }

  /** Calls the listener once for all of these events that follow each other without a pause, right after them. */
  onAny(names: readonly (keyof Payloads)[], listener: () => void): void {
    let isDue = false;
    for (const name of names) {
      this.on(name, () => {
        if (isDue) return;
        isDue = true;
        queueMicrotask(() => {
          isDue = false;
          listener();
        });
      });
    }
  }

  emit<Name extends keyof Payloads>(name: Name, ...payload: Payloads[Name]): void {
    for (const listener of this.#listeners[name] ?? []) listener(...payload);
  }
}
