/** Events within this process. Listeners are called at once, in order. One that throws ends the event. */
export class Events<Told extends { readonly [Name in keyof Told]: readonly unknown[] }> {
  readonly #listeners: { [Name in keyof Told]?: ((...told: Told[Name]) => void)[] } = {};

  on<Name extends keyof Told>(name: Name, listener: (...told: Told[Name]) => void): void {
    const others = this.#listeners[name];
    if (others === undefined) this.#listeners[name] = [listener];
    else others.push(listener);
  }

  emit<Name extends keyof Told>(name: Name, ...told: Told[Name]): void {
    for (const listener of this.#listeners[name] ?? []) listener(...told);
  }
}
