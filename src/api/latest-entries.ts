/** Sets an entry as the latest of a map, and drops those that were set longest ago beyond `most`. */
export function setLatest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= most) return;
    map.delete(oldest);
  }
}

/** Sets an entry of a map whose entries end in the order in which they are set, and drops those that have ended. */
export function setUntilEnded<Key, Value>(
  map: Map<Key, Value>,
  key: Key,
  value: Value,
  hasEnded: (value: Value) => boolean,
): void {
  map.delete(key);
  map.set(key, value);
  for (const [oldest, of] of map) {
    if (!hasEnded(of)) return;
    map.delete(oldest);
  }
}
