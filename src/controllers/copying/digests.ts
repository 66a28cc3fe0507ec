import { createHash } from "node:crypto";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { type CopiedKind, contentText } from "../../copies/kind.ts";
import type { HostIdentity } from "../../pods/delegate.ts";

/** Digests of what copies contain, so that two large objects are compared without both being kept whole. */
export class ContentDigests<T extends KubeObject> {
  readonly #kinds: ReadonlyMap<string, CopiedKind<T>>;
  readonly #host: HostIdentity;
  readonly #known = new WeakMap<object, string>();

  constructor(kinds: ReadonlyMap<string, CopiedKind<T>>, host: HostIdentity) {
    this.#kinds = kinds;
    this.#host = host;
  }

  storedCopy(kind: string, copy: Stored<T>): Stored<T> {
    const record = this.#kinds.get(kind);
    if (record?.withoutContent === undefined) return copy;
    const stored = record.withoutContent(copy);
    this.#known.set(stored, digestOf(contentText(record, copy)));
    return stored;
  }

  isSame(kind: string, copy: Stored<T>, source: Stored<T>): boolean {
    const record = this.#kinds.get(kind);
    if (record === undefined) return false;
    if (record.applied !== undefined) return record.applied.isInStep(copy, source);
    const wanted = this.#of(source, () => contentText(record, record.body(source, this.#host)));
    return this.#of(copy, () => contentText(record, copy)) === wanted;
  }

  #of(object: object, text: () => string): string {
    const digest = this.#known.get(object) ?? digestOf(text());
    this.#known.set(object, digest);
    return digest;
  }
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

/** Returns a digest by which two versions of one object are told apart, and no more. */
export function shortDigest(text: string): string {
  return digestOf(text).slice(0, 22);
}
