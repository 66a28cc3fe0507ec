import { type ObjectKey, objectRef } from "../../api/kubernetes.ts";
import type { Clock } from "../../runtime/clock.ts";
import { KeyedTimers } from "../../runtime/keyed-timers.ts";

export interface WaitLimitOptions {
  readonly clock: Clock;
  readonly onChange: (key: ObjectKey) => void;
}

// The kubelet does not wait for Services at all, so a pod waits a moment only.
const LONGEST_SERVICES_WAIT_MS = 5_000;

/** Limits how long pods wait for the copies of their Services, and for members whose copies cannot be read. */
export class WaitLimit {
  readonly #options: WaitLimitOptions;
  /** The pods that have begun to wait, by uid. */
  readonly #pods = new Map<string, ObjectKey>();
  readonly #members = new Set<object>();
  /** Pods and members whose time is over. */
  readonly #over = new Set<string | object>();
  readonly #timers: KeyedTimers<string | object>;

  constructor(options: WaitLimitOptions) {
    this.#options = options;
    this.#timers = new KeyedTimers(options.clock);
  }

  wait(key: ObjectKey, uid: string): void {
    if (this.#pods.has(uid)) return;
    this.#pods.set(uid, key);
    this.#start(uid, () => this.#options.onChange(key));
  }

  over(uid: string): boolean {
    return this.#over.has(uid);
  }

  /** The first call starts the wait. */
  overFor(member: object): boolean {
    if (!this.#members.has(member)) this.#start(member, () => this.wakeAll());
    this.#members.add(member);
    return this.#over.has(member);
  }

  follow(members: readonly object[]): void {
    for (const member of this.#members) {
      if (members.includes(member)) continue;
      this.#members.delete(member);
      this.#end(member);
    }
  }

  forget(uid: string): void {
    this.#pods.delete(uid);
    this.#end(uid);
  }

  wake(namespace: string): void {
    for (const [uid, key] of this.#pods) {
      if (!this.over(uid) && objectRef(key).namespace === namespace) this.#options.onChange(key);
    }
  }

  wakeAll(): void {
    for (const [uid, key] of this.#pods) if (!this.over(uid)) this.#options.onChange(key);
  }

  stop(): void {
    this.#timers.stop();
    this.#pods.clear();
  }

  #start(one: string | object, onOver: () => void): void {
    this.#timers.start(one, LONGEST_SERVICES_WAIT_MS, () => {
      this.#over.add(one);
      onOver();
    });
  }

  #end(one: string | object): void {
    this.#timers.cancel(one);
    this.#over.delete(one);
  }
}
