/** An index from values to the items that have them, as a store's, for items that no watch shows. */
export class ReverseIndex<Item, Value> {
  readonly #values = new Map<Item, readonly Value[]>();
  readonly #items = new Map<Value, Set<Item>>();

  /** Replaces the item's values. An item that keeps them keeps its place among the others. */
  set(item: Item, values: readonly Value[]): void {
    const before = this.#values.get(item);
    if (before?.length === values.length && values.every((value) => before.includes(value))) return;
    this.delete(item);
    this.#values.set(item, values);
    for (const value of values) this.#items.set(value, (this.#items.get(value) ?? new Set<Item>()).add(item));
  }

  delete(item: Item): readonly Value[] {
    const values = this.#values.get(item) ?? [];
    this.#values.delete(item);
    for (const value of values) {
      const items = this.#items.get(value);
      items?.delete(item);
      if (items?.size === 0) this.#items.delete(value);
    }
    return values;
  }

  has(value: Value): boolean {
    return this.#items.has(value);
  }

  of(value: Value): Iterable<Item> {
    return this.#items.get(value) ?? [];
  }

  values(): IterableIterator<Value> {
    return this.#items.keys();
  }
}
