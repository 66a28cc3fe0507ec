import { type ObjectKey, objectRef } from "../../api/kubernetes.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";

export interface PatienceOptions {
  readonly clock: Clock;
  /** The pod may have what it waits for, or has waited long enough. */
  readonly onChange: (key: ObjectKey) => void;
}

// A kubelet starts a pod without its Services, and without their environment variables.
const PATIENCE_MS = 5_000;

/** How long pods wait for their Services: a moment, and never for a member that cannot have them. */
export class Patience {
  readonly #options: PatienceOptions;
  /** Pods that wait, or have waited long enough, by uid. */
  readonly #pods = new Map<string, { readonly key: ObjectKey; over: boolean; readonly timer: Timer }>();
  /** Members that pods wait for until they are read, or have waited for long enough. */
  readonly #members = new Map<object, { over: boolean; readonly timer: Timer }>();

  constructor(options: PatienceOptions) {
    this.#options = options;
  }

  /** The pod begins to wait, unless it has before. */
  wait(key: ObjectKey, uid: string): void {
    if (this.#pods.has(uid)) return;
    const timer = this.#options.clock.after(PATIENCE_MS, () => {
      const pod = this.#pods.get(uid);
      if (pod !== undefined) pod.over = true;
      this.#options.onChange(key);
    });
    this.#pods.set(uid, { key, over: false, timer });
  }

  /** Whether the pod has waited long enough. */
  over(uid: string): boolean {
    return this.#pods.get(uid)?.over === true;
  }

  /** Whether pods have waited long enough for the member to be read; the first that asks begins to wait. */
  overFor(member: object): boolean {
    const waiting = this.#members.get(member);
    if (waiting !== undefined) return waiting.over;
    const timer = this.#options.clock.after(PATIENCE_MS, () => {
      this.#members.set(member, { over: true, timer });
      this.wakeAll();
    });
    this.#members.set(member, { over: false, timer });
    return false;
  }

  /** Waits for these members, and for no others. */
  follow(members: readonly object[]): void {
    for (const [member, { timer }] of this.#members) {
      if (members.includes(member)) continue;
      timer.cancel();
      this.#members.delete(member);
    }
  }

  /** The pod is where it is to be, or gone. */
  forget(uid: string): void {
    this.#pods.get(uid)?.timer.cancel();
    this.#pods.delete(uid);
  }

  /** Lets the pods of a namespace that wait look again. */
  wake(namespace: string): void {
    for (const { key, over } of this.#pods.values()) {
      if (!over && objectRef(key).namespace === namespace) this.#options.onChange(key);
    }
  }

  /** Lets all that wait look again. */
  wakeAll(): void {
    for (const { key, over } of this.#pods.values()) if (!over) this.#options.onChange(key);
  }

  stop(): void {
    for (const { timer } of [...this.#pods.values(), ...this.#members.values()]) timer.cancel();
    this.#pods.clear();
  }
}
