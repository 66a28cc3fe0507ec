import { type ObjectKey, objectRef } from "../../api/kubernetes.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";

export interface WaitLimitOptions {
  readonly clock: Clock;
  readonly onChange: (key: ObjectKey) => void;
}

// The kubelet does not wait for Services at all, so a pod waits a moment only.
const LONGEST_SERVICES_WAIT_MS = 5_000;

/** Limits how long pods wait for the copies of their Services, and for members whose copies cannot be read. */
export class WaitLimit {
  readonly #options: WaitLimitOptions;
  readonly #pods = new Map<string, { readonly key: ObjectKey; over: boolean; readonly timer: Timer }>();
  readonly #members = new Map<object, { over: boolean; readonly timer: Timer }>();

  constructor(options: WaitLimitOptions) {
    this.#options = options;
  }

  wait(key: ObjectKey, uid: string): void {
    if (this.#pods.has(uid)) return;
    const timer = this.#options.clock.after(LONGEST_SERVICES_WAIT_MS, () => {
      const pod = this.#pods.get(uid);
      if (pod !== undefined) pod.over = true;
      this.#options.onChange(key);
    });
    this.#pods.set(uid, { key, over: false, timer });
  }

  over(uid: string): boolean {
    return this.#pods.get(uid)?.over === true;
  }

  /** The first call starts the wait. */
  overFor(member: object): boolean {
    const waiting = this.#members.get(member);
    if (waiting !== undefined) return waiting.over;
    const timer = this.#options.clock.after(LONGEST_SERVICES_WAIT_MS, () => {
      this.#members.set(member, { over: true, timer });
      this.wakeAll();
    });
    this.#members.set(member, { over: false, timer });
    return false;
  }

  follow(members: readonly object[]): void {
    for (const [member, { timer }] of this.#members) {
      if (members.includes(member)) continue;
      timer.cancel();
      this.#members.delete(member);
    }
  }

  forget(uid: string): void {
    this.#pods.get(uid)?.timer.cancel();
    this.#pods.delete(uid);
  }

  wake(namespace: string): void {
    for (const { key, over } of this.#pods.values()) {
      if (!over && objectRef(key).namespace === namespace) this.#options.onChange(key);
    }
  }

  wakeAll(): void {
    for (const { key, over } of this.#pods.values()) if (!over) this.#options.onChange(key);
  }

  stop(): void {
    for (const { timer } of [...this.#pods.values(), ...this.#members.values()]) timer.cancel();
    this.#pods.clear();
  }
}
